/** What the chat page of `examples/chat` uses, as one file. */
import "./src/display/define.js";

export { createSession } from "./src/session.js";
