//! What the fields of error objects are called, over all vendors. Names come in lower case.

/// Fields that hold an identifier.
pub(super) fn is_code(key: &str) -> bool {
    matches!(
        key,
        "code"
            | "type"
            | "status"
            | "reason"
            | "error"
            | "error_code"
            | "errorcode"
            | "errortype"
            | "error_type"
            | "kind"
            | "name"
            | "quotaid"
            | "quota_id"
            | "quotametric"
            | "quota_limit"
            | "quota_metric"
            | "category"
            | "__type"
            | "limit_source"
            | "error_name"
            | "subtype"
            | "httpstatus"
            | "err_code"
            | "terminal_reason"
            | "ratelimittype"
            | "event.name"
    ) || key.ends_with("_code")
        || key.ends_with("errortype")
}

/// Fields that hold words.
pub(super) fn is_sentence(key: &str) -> bool {
    matches!(
        key,
        "" | "message"
            | "msg"
            | "error"
            | "errors"
            | "detail"
            | "details"
            | "description"
            | "error_description"
            | "error_message"
            | "errormessage"
            | "raw"
            | "title"
            | "body"
            | "responsebody"
            | "response_body"
            | "cause"
            | "result"
            | "error_msg"
            | "errmsg"
            | "reason_phrase"
            | "status_msg"
            | "status_message"
            | "hint"
            | "suggestion"
            | "failure"
            | "text"
            | "info"
            | "data"
            | "stderr"
            | "output"
            | "last_error"
    )
}

/// Fields that hold an HTTP status.
pub(super) fn is_status(key: &str) -> bool {
    matches!(
        key,
        "code"
            | "status"
            | "statuscode"
            | "status_code"
            | "http_status"
            | "httpstatus"
            | "error_status"
            | "api_error_status"
            | "error_code"
            | "http_code"
            | "httpcode"
            | "raw_status_code"
            | "originalstatuscode"
            | "upstream_status"
            | "response_status"
    )
}

/// Fields that hold a wait.
pub(super) fn is_wait(key: &str) -> bool {
    matches!(
        key,
        "retrydelay"
            | "retry_delay"
            | "retry_after"
            | "retryafter"
            | "retry-after"
            | "retry_after_seconds"
            | "retry_after_ms"
            | "retryafterms"
            | "resets_at"
            | "resetsat"
            | "reset_at"
            | "resetat"
            | "resets_in_seconds"
            | "reset_time"
            | "resettime"
            | "resets_in"
            | "retryafterseconds"
            | "resets"
            | "available_at"
            | "next_reset"
            | "reset_after"
            | "reset_in_seconds"
            | "retry_at"
            | "retryat"
            | "quotaresettimestamp"
            | "quotaresetdelay"
            | "estimated_time"
    )
}

/// A limit of nothing.
pub(super) fn is_zero_limit(key: &str, value: &str) -> bool {
    matches!(key, "quotavalue" | "quota_limit_value" | "quota_value") && value == "0"
}
