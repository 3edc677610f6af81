/** `@koboshi/client/display`: the class of `<koboshi-error>`. `@koboshi/client/display/define` registers it. */
export { type Action, type ErrorResponse, KoboshiErrorElement, type Phrases, type RetryDetail, type Shown } from "./element.js";
