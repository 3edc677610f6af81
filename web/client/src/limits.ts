/** Times and sizes of the client, in one place. A file without imports, so that a bundler writes the numbers where they are used. */

/** A connection that was not opened by then is given up. */
export const HANDSHAKE_MS = 10_000;
/** So long may a socket that is asked whether it lives take. */
export const PONG_MS = 3_000;
/** A clock that is so far off has jumped: the device slept. */
export const CLOCK_JUMP_MS = 5_000;
/** A hidden page with nothing to do keeps its connection so long. */
export const HIDDEN_MS = 300_000;
/** After so long a connection counts as one that works, and the backoff begins anew. */
export const STABLE_MS = 5_000;
export const FIRST_BACKOFF_MS = 500;
export const MAX_BACKOFF_MS = 15_000;
export const CONNECT_TIMEOUT_MS = 30_000;
export const HEARTBEAT_MS = 20_000;
export const RECONNECT_MS = 3_000;

/** A frame of the server, and the text of an answer, in UTF-16 units. A snapshot may say a whole answer in one frame. */
export const MAX_FRAME_UNITS = 32_000_000;
export const MAX_TEXT_UNITS = 16_000_000;
export const MAX_CALLS = 1_000;
export const MAX_MESSAGES = 1_000;
/** All pages of a snapshot. */
export const MAX_SNAPSHOT_MESSAGES = 10_000;

export const MAX_OUTBOX_ENTRIES = 50;
export const MAX_OUTBOX_UNITS = 256 * 1024;
/** Events that wait for a consumer. */
export const MAX_EVENTS = 256;
/** Entries of a map that forgets the oldest ones. */
export const MAX_REMEMBERED = 200;
