//! The words that make a time a wait, or not, in languages written with spaces.
//!
//! Plain lists, folded as [`super::token`] folds them: small letters, no accents. How they work together is described
//! in [`super::cue`]; adding a language is adding words here.

/// Ask to try again.
pub(super) const AGAIN: &[&str] = &[
    "try", "versuchen", "versuche", "reessayez", "reessayer", "reessaie", "reessayiez", "revenez",
    "intentalo", "intentelo", "intente", "intenta", "intentarlo", "intentar", "vuelva", "vuelve", "tente",
    "tenta", "tentar", "volte", "riprova", "riprovare", "riprovate", "riprovi", "ritenta", "ritentare",
    "probeer", "probeert", "повторите", "повторить", "попробуйте", "попробуй", "thử", "coba", "cobalah",
    "ulangi", "sprobuj", "sprobowac",
];

/// Say that a limit is lifted.
pub(super) const RESETS: &[&str] = &[
    "reset", "resets", "resetting", "refill", "refills", "replenish", "replenished", "replenishes",
    "refresh", "refreshes", "refreshed", "restored", "restores", "restore", "opens", "reopens", "unlocks",
    "lifts", "lifted", "reinicia", "reiniciado", "reiniciada", "reiniciara", "redefine", "rollover", "setzt",
    "clears",
];

/// Beginnings of words for a reset, in languages that inflect them.
pub(super) const RESET_STEMS: &[&str] = &[
    "reinitialis", "restablec", "redefini", "zuruckgesetzt", "zurucksetz", "replenish", "renouvel", "renova",
    "reimpost", "ripristin", "azzer", "gereset", "сброс", "сбрас", "обнулит", "sıfırlan", "direset",
    "zresetow", "odnowi",
];

/// Say that something is possible; a preposition must follow.
pub(super) const OPEN: &[&str] = &[
    "renew", "renews", "renewed", "available", "allowed", "regain", "regains", "resume", "resumes",
    "continue", "unblocked", "unlocked", "return", "verfugbar", "disponible", "disponibles", "disponivel",
    "access", "accepted", "possible", "resend",
];

/// What one may do after "before": "30 seconds before retrying".
pub(super) const ASKING: &[&str] = &[
    "retry", "retrying", "try", "trying", "sending", "making", "next", "another", "attempting", "submitting",
    "continuing", "again", "reessayer", "intentarlo", "intentar", "reintentar", "tentar", "using",
];

/// Behind these a time is a window, a limit, a count, a client's own pause, or has passed.
pub(super) const DENIALS: &[&str] = &[
    "retrying", "reconnecting", "trying", "timed", "timeout", "took", "takes", "taken", "failed", "fails",
    "failing", "elapsed", "waited", "slept", "sleeping", "sleep", "backing", "backoff", "pausing", "paused",
    "pause", "attempt", "attempts", "attempting", "per", "within", "last", "past", "previous", "lasted",
    "ran", "spent", "since", "started", "longer", "valid", "expired", "expires", "aborted", "closed",
    "cancelled", "canceled", "polling", "restarting", "resuming", "delaying", "created", "occurred",
    "reintentando", "reconectando", "tentando", "innerhalb", "versucht", "fehlgeschlagen", "tentative",
    "essai", "versuch", "reintento", "tentativa", "depuis", "desde", "seit",
];

/// Say nothing: they may stand anywhere between a cue and its expression.
pub(super) const FILLERS: &[&str] = &[
    "of", "header", "value", "again", "automatically", "at", "in", "on", "after", "by", "before", "the",
    "your", "this", "it", "its", "is", "are", "will", "be", "time", "date", "next", "just", "about",
    "approximately", "approx", "around", "roughly", "exactly", "least", "another", "for", "request", "only",
    "from", "than", "less", "under", "now", "you", "a", "an", "additional", "further", "please", "or",
    "window", "um", "am", "ab", "nach", "sie", "es", "bitte", "noch", "einmal", "nochmal", "erneut",
    "wieder", "sich", "etwa", "ca", "zum", "le", "la", "vers", "environ", "nouveau", "apres", "pendant",
    "se", "las", "el", "en", "de", "nuevo", "novamente", "despues", "tras", "as", "em", "apos", "no", "dia",
    "mais", "sera", "opnieuw", "снова", "еще", "lại", "lagi", "ponownie", "только", "wird", "werden", "por",
    "durante", "fur", "not", "earlier", "any", "b",
];

/// After these, "for" is followed by how long access stays blocked.
pub(super) const BLOCKED_WORDS: &[&str] =
    &["limited", "blocked", "throttled", "locked", "banned", "suspended", "disabled"];

/// Right behind the expression, these make it a window or something past.
pub(super) const WINDOWS: &[&str] = &[
    "ago", "window", "windows", "timeout", "elapsed", "earlier", "interval", "old", "each", "limit", "late",
];

/// Before "retry" or "wait", these say that a client speaks of itself.
pub(super) const OWN: &[&str] = &[
    "retry", "total", "will", "ll", "next", "auto", "shall", "would", "first", "second", "third", "final",
    "automatic", "client", "ms", "me", "s",
];
