/** `@koboshi/client/testing`: a server that breaks on purpose, and time that a test moves. */
export { type VirtualClock, virtualClock } from "./clock.js";
export { cutAt, type FakeServerOptions, FakeServer, type Fault, killOwnerAt, type Peer, type Piece, rewindAt } from "./server.js";
