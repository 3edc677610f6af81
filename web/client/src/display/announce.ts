/**
 * Two live regions of the document, polite and assertive, in which the display speaks to screen readers.
 *
 * They stand in the document before any text is put into them: regions in shadow roots, or made together with their text, are announced unreliably.
 */
const regions: Partial<Record<"polite" | "assertive", HTMLElement>> = {};

/** Puts both regions into the page. */
export function prepare(): void {
  const body = globalThis.document?.body;
  if (!body) return globalThis.document?.addEventListener("DOMContentLoaded", prepare, { once: true });
  for (const kind of ["polite", "assertive"] as const) {
    if (regions[kind]?.isConnected) continue;
    const region = (regions[kind] = document.createElement("div"));
    region.setAttribute("role", kind === "polite" ? "status" : "alert");
    region.setAttribute("aria-live", kind);
    region.dataset.koboshi = kind;
    region.style.cssText = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)";
    body.append(region);
  }
}

export function announce(text: string, kind: "polite" | "assertive", lang: string): void {
  prepare();
  const region = regions[kind];
  if (!region) return;
  region.lang = lang;
  // The same text once more is a change only if it is another node.
  region.replaceChildren(document.createTextNode(text));
}
