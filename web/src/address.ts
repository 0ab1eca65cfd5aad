// The address of the page, which holds what the reader has chosen.

/** Browsers refuse an address that changes more often. */
const PAUSE = 250;
const AFTER_REFUSAL = 2000;

/** Writes the address at once, or as soon as it may be written again; always the latest in the end. */
export class Address {
  private written = 0;
  private timer = 0;

  constructor(private readonly text: () => string) {}

  write(): void {
    window.clearTimeout(this.timer);
    const wait = this.written + PAUSE - Date.now();
    if (wait > 0) {
      this.timer = window.setTimeout(() => this.write(), wait);
      return;
    }
    this.written = Date.now();
    try {
      history.replaceState(null, "", this.text() || location.pathname);
    } catch {
      this.timer = window.setTimeout(() => this.write(), AFTER_REFUSAL);
    }
  }
}
