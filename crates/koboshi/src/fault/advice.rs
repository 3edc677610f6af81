//! What a fault permits, as separate questions.
//!
//! A single `retryable` flag is the classic mistake: a bad key cannot be cured by asking the same target
//! again, yet another target may serve the request at once, and the user gains nothing by waiting. So the
//! table answers three questions (same target, other target, user later) and a fourth one apart: does it
//! say anything about the target's health. The table's answers carry their condition (`AfterWait`,
//! `LargerWindow`); [`Advice`] is what is left of them in one fault: yes or no.

macro_rules! answers {
    ($(#[$doc:meta])* $type:ident { $($variant:ident => $name:literal, $yes:literal, $meaning:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $type {
            $(#[doc = $meaning] $variant,)+
        }

        impl $type {
            /// Short form for tables and JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The usual answer as yes or no.
            #[must_use]
            pub fn usually(self) -> bool {
                match self { $(Self::$variant => $yes,)+ }
            }
        }
    };
}

answers! {
    /// May the same target be tried again?
    Same {
        Yes => "yes", true, "Yes.";
        No => "no", false, "No.";
        AfterWait => "after the wait", true, "Yes, after the stated wait.";
        AfterRefresh => "after refresh", true, "Yes, once the credential was refreshed.";
        Trimmed => "only trimmed", false, "Only with a smaller request.";
        Reask => "re-ask", true, "Yes, by telling the model what was wrong.";
        ByCategory => "by category", false, "Depends on what the tool reported.";
        ByErrno => "by errno", false, "Depends on why the start failed.";
        Backoff => "with backoff", true, "Yes, with growing pauses.";
        AtEnd => "at its end", true, "Yes, when the cooldown ends.";
    }
}

answers! {
    /// May another target succeed?
    Other {
        Yes => "yes", true, "Yes.";
        No => "no", false, "No.";
        LargerWindow => "larger window", true, "Yes, one with a larger context window.";
        CapabilityOnly => "capability only", false, "Only where the first target lacked a capability.";
        NotApplicable => "-", false, "The question does not arise.";
    }
}

answers! {
    /// May the user try later?
    Later {
        Yes => "yes", true, "Yes.";
        No => "no", false, "No.";
        AtReset => "at the reset; billing: no", true, "Yes, when the allowance is renewed; not where only money helps.";
        NextTurn => "next user turn", true, "With the next message of the user.";
        NotApplicable => "-", false, "The question does not arise.";
    }
}

answers! {
    /// Does the fault count against the target's health?
    Health {
        Yes => "yes", true, "Yes.";
        No => "no", false, "No.";
        ByScope => "by scope", true, "Yes where the refusal is for the account, key, network or region as a whole.";
    }
}

/// What one fault permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Advice {
    /// The same target may be tried again (after the stated wait, if there is one).
    pub same: bool,
    /// Another target may succeed.
    pub other: bool,
    /// The user may try later.
    pub later: bool,
    /// It counts against the target's health.
    pub health: bool,
}
