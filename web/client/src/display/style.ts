/** The look of the error display: quiet, without motion, light and dark, forced colours, 320 px. Every colour is a custom property of the page's choice. */
export const STYLE = `
:host{display:block;font:var(--koboshi-error-font,inherit);line-height:1.5;
--a:var(--koboshi-error-accent,light-dark(#b3261e,#ffb4ab));
--b:var(--koboshi-error-bg,color-mix(in srgb,var(--a) 5%,Canvas));
--l:var(--koboshi-error-border,color-mix(in srgb,var(--a) 28%,Canvas));
--g:var(--koboshi-error-gap,.75rem)}
:host([tone=warning]){--a:var(--koboshi-error-accent,light-dark(#855300,#f5bf6b))}
:host([tone=info]){--a:var(--koboshi-error-accent,light-dark(#30568a,#acf))}
:host([hidden]),[hidden]{display:none!important}
*{box-sizing:border-box;margin:0}
.box{display:flex;gap:var(--g);padding:var(--g) calc(var(--g)*1.25);color:var(--koboshi-error-fg,CanvasText);background:var(--b);border:1px solid var(--l);border-inline-start:3px solid var(--a);border-radius:var(--koboshi-error-radius,.625rem);overflow-wrap:anywhere;word-break:auto-phrase;font-variant-numeric:tabular-nums}
.icon{flex:none;color:var(--a);width:1.25rem;height:1.25rem;margin-top:.125rem;border:1.5px solid;border-radius:50%;font:700 .75rem/1.125rem sans-serif;text-align:center}
.body{flex:1;min-width:0;display:grid;gap:.25rem}
.message{font-weight:600}
.row{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem .75rem;margin-top:.5rem}
button{font:inherit;min-height:2rem;min-width:2rem;color:inherit;background:none;border:1px solid transparent;border-radius:.5rem;cursor:pointer;padding:.125rem .5rem}
.retry,.stop{border-color:var(--a);color:var(--a);font-weight:600;padding:.25rem .875rem}
.retry[aria-disabled=true]{border-style:dashed;font-weight:400}
.details{font-size:.8125em;display:flex;flex-wrap:wrap;align-items:center;gap:0 .75rem;margin-top:.25rem}
.code{font-family:ui-monospace,monospace}
.copy{text-decoration:underline;padding-inline:0}
.dismiss{flex:none;align-self:flex-start;margin:-.25rem -.5rem 0 0;padding:0;font-size:1.25em;line-height:1}
button:hover:not([aria-disabled=true]){background:color-mix(in srgb,var(--a) 10%,transparent)}
:focus-visible{outline:2px solid var(--a)}
:host([compact]) .box{padding:.375rem var(--g)}:host([compact]) .details{display:none}
@media (forced-colors:active){.box{border-inline-start-width:6px}.retry[aria-disabled=true]{color:GrayText;border-color:GrayText}}
`;
