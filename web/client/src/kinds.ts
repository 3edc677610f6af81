// Made by `KOBOSHI_GOLDEN=write cargo test -p koboshi-cli --test web`. Edit the fault table (crates/koboshi/src/fault/kind.rs) instead.

/** Every kind of fault, with the digits of its code and its number in the streaming protocol. */
export const KINDS = {
  connection_failed: [1001, 1001],
  timeout: [1002, 1002],
  unavailable: [1003, 5002],
  connection_refused: [1004, 1001],
  connection_closed: [1005, 1003],
  unauthorized: [2001, 2001],
  token_expired: [2002, 2002],
  permission_denied: [2003, 2001],
  rate_limited: [3001, 4004],
  quota_exceeded: [3002, 4004],
  context_build_failed: [4001, 4001],
  context_too_large: [4002, 4002],
  template_not_found: [4003, 4001],
  invalid_request: [4004, 3001],
  model_not_found: [4005, 3001],
  invalid_message: [4006, 3001],
  message_too_large: [4007, 3002],
  response_invalid: [5001, 4001],
  content_filtered: [5002, 4001],
  overloaded: [5003, 5002],
  tool_arguments_invalid: [5004, 4003],
  agent_error: [6001, 4001],
  tool_failed: [6002, 4003],
  tool_loop: [6003, 4003],
  call_depth_exceeded: [6004, 4003],
  spawn_failed: [7001, 5001],
  process_failed: [7002, 5001],
  cooling_down: [7003, 5002],
  parked: [7004, 5002],
  internal: [9001, 5001],
  conversation_not_found: [9002, 3001],
  message_save_failed: [9003, 5001],
} as const;

export type FaultKind = keyof typeof KINDS;
