import { h } from "./dom";

/** Hands a file to the reader; nothing leaves the page. */
export function download(name: string, content: BlobPart, type: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

export function downloadPng(name: string, canvas: HTMLCanvasElement): void {
  canvas.toBlob((blob) => {
    if (blob) download(name, blob, "image/png");
  }, "image/png");
}
