/** Registers `<koboshi-error>`, once, and prepares its live regions. The only file with side effects. */
import { KoboshiErrorElement } from "./element.js";

if (globalThis.customElements && !customElements.get("koboshi-error")) {
  customElements.define("koboshi-error", KoboshiErrorElement);
  KoboshiErrorElement.prepare();
}

declare global {
  interface HTMLElementTagNameMap {
    "koboshi-error": KoboshiErrorElement;
  }
}
