//! Generations of Gemini, by the name of the model.

/// A generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Age {
    kind: Kind,
    /// The large model of its generation.
    is_pro: bool,
    /// The first large model of generation 3, which knows two levels of thinking.
    has_two_levels: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Up to 2.0, and Gemma: does not think.
    Plain,
    /// 2.5: thinks with so many tokens.
    Budgets,
    /// From 3 on, and names that say no number: thinks so hard.
    Levels,
}

impl Age {
    /// The generation of this model.
    pub(super) fn of(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let number = model.split_once("gemini-").map_or("", |(_, rest)| rest);
        let kind = if model.contains("gemma") || number.starts_with("1.") || number.starts_with("2.0") {
            Kind::Plain
        } else if number.starts_with("2.") {
            Kind::Budgets
        } else {
            Kind::Levels
        };
        Self { kind, is_pro: model.contains("-pro"), has_two_levels: number.starts_with("3-pro") }
    }

    /// Whether the answer can be JSON where tools are offered.
    pub(super) fn has_json_with_tools(self) -> bool {
        self.kind == Kind::Levels
    }

    /// Whether pictures can stand inside of a result.
    pub(super) fn has_media_in_results(self) -> bool {
        self.kind == Kind::Levels
    }

    pub(super) fn thinks(self) -> bool {
        self.kind != Kind::Plain
    }

    pub(super) fn has_levels(self) -> bool {
        self.kind == Kind::Levels
    }

    /// The fewest and the most tokens for thinking. The large model cannot be kept from it.
    pub(super) fn budget(self) -> (u64, u64) {
        if self.is_pro { (128, 32_768) } else { (0, 24_576) }
    }

    /// Whether it knows this level.
    pub(super) fn knows(self, level: &str) -> bool {
        match level {
            "MINIMAL" => !self.is_pro,
            "MEDIUM" => !self.has_two_levels,
            _ => true,
        }
    }
}
