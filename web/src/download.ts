import { h } from "./dom";

/** Hands a file to the reader; nothing leaves the page. */
export function download(name: string, content: BlobPart, type: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

const SHARP = 3;

/** A drawing as a picture, on white. */
export function downloadPng(name: string, svg: string): void {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  const image = new Image();
  image.onload = () => {
    const canvas = h("canvas", { width: SHARP * image.width, height: SHARP * image.height });
    const context = canvas.getContext("2d");
    if (context) {
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => blob && download(name, blob, "image/png"), "image/png");
    }
    URL.revokeObjectURL(address);
  };
  image.src = address;
}
