//! The sentences of the simulated provider: phrases that fit together in any choice.
//!
//! A bar ends a piece where the script has no spaces.

/// The language of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Japanese,
}

impl Language {
    /// The language of these texts: Japanese if any of them is.
    pub(crate) fn of(text: &str) -> Self {
        let is_japanese = |c: char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}');
        if text.chars().take(2000).any(is_japanese) { Self::Japanese } else { Self::English }
    }

    /// The text in place of a call that is not made up.
    pub(crate) const fn no_call(self) -> &'static str {
        match self {
            Self::English => "This is a simulated answer, and no tool was called.",
            Self::Japanese => "これは模擬の応答で、ツールは呼び出していません。",
        }
    }

    /// The text about images and files.
    pub(crate) fn pictures(self, count: usize) -> String {
        match (self, count) {
            (Self::English, 1) => "I see the picture.".to_owned(),
            (Self::English, count) => format!("I see the {count} pictures."),
            (Self::Japanese, count) => format!("画像を{count}枚受け取りました。"),
        }
    }

    /// Where a sentence may come from, phrase by phrase.
    pub(crate) const fn phrases(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::English => &[OPENERS, SUBJECTS, DEEDS, TAILS],
            Self::Japanese => &[JA_OPENERS, JA_SUBJECTS, JA_TAILS, JA_DEEDS],
        }
    }
}

const OPENERS: &[&str] = &[
    "Every morning", "After each fall", "On a quiet day", "In the small workshop", "Before the rain",
    "At the market", "Without a word", "When the wind turns", "By the window", "Late in the year",
];
const SUBJECTS: &[&str] = &[
    "the round doll", "a patient maker", "the red toy", "an old keeper", "the little weight",
    "a young painter", "the wooden shelf", "the next visitor", "a careful hand", "the whole family",
];
const DEEDS: &[&str] = &[
    "finds its balance", "keeps the promise", "counts the steps", "carries the light",
    "returns to its place", "learns from the push", "waits for a sign", "draws a calm line",
    "opens the door", "remembers the way",
];
const TAILS: &[&str] = &[
    "and stands up again", "as if nothing had happened", "while the others watch", "for the seventh time",
    "with a small smile", "and goes on working", "before anyone asks", "until the lamp is lit",
    "and tells nobody", "because it was made so",
];

const JA_OPENERS: &[&str] = &[
    "毎朝|、", "倒れる|たび|に|、", "静かな|日|に|、", "小さな|工房|で|、", "雨|の|前|に|、",
    "市場|で|は|、", "風|が|変わる|と|、", "年|の|暮れ|に|、",
];
const JA_SUBJECTS: &[&str] = &[
    "丸い|人形|は|", "気長な|職人|は|", "赤い|小法師|は|", "古い|番人|は|", "小さな|おもり|は|",
    "若い|絵師|は|", "次の|客|は|", "家族|は|みな|、",
];
const JA_TAILS: &[&str] = &[
    "何事|も|なかった|よう|に|", "みな|が|見る|前|で|", "七|度目|も|", "少し|笑って|",
    "だれ|に|も|言わず|に|", "灯|が|ともる|まで|", "もう|一度|", "ゆっくり|と|",
];
const JA_DEEDS: &[&str] = &[
    "起き|上がり|ます", "約束|を|守り|ます", "歩み|を|数え|ます", "光|を|運び|ます",
    "元|の|場所|へ|戻り|ます", "合図|を|待ち|ます", "静かな|線|を|引き|ます", "道|を|思い|出し|ます",
];
