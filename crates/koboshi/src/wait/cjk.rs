//! The words before and behind an expression that make it a wait, in Japanese, Chinese and Korean.
//!
//! These languages put the deciding word behind the expression and write without spaces, so the text next to
//! it is compared as a string with the spaces taken out: `後に再試行してください`, `后重试`, `에 재설정`. Only a few
//! characters on each side are looked at.
//!
//! "Will retry" (再試行します, 将在…后重试, 재시도합니다) is a client's own pause and no wait; "please retry" is one.

use std::ops::Range;

use super::cue::Verdict;

/// How many characters are looked at on each side.
const REACH: usize = 24;

const RESETS: &[&str] = &[
    "リセット", "重置", "刷新", "恢复", "恢復", "重設", "回復", "復活", "更新", "재설정", "초기화", "리셋",
    "갱신", "복구",
];
const AGAIN: &[&str] = &[
    "再試行", "再実行", "お試し", "試してください", "重试", "重試", "再试", "再試", "再度", "もう一度",
    "やり直", "再び", "再次", "再来", "再開", "重新", "다시", "재시도", "시도", "利用可能", "可用",
    "使用可能", "使用できる", "利用できる", "解除", "이용", "사용", "リトライ",
];
const OWN: &[&str] = &[
    "再試行します", "再試行しています", "リトライします", "リトライしています", "再接続します",
    "自動的に再試行", "自动重试", "自動重試", "재시도합니다", "다시시도합니다", "재시도중", "자동으로",
    "再接続",
];
const OVER: &[&str] =
    &["タイムアウト", "失敗", "超时", "逾時", "失败", "시간초과", "실패", "切断", "断开", "중단"];
const WINDOWS: &[&str] =
    &["以内", "内", "間隔", "あたり", "ごと", "毎", "前", "以上", "이내", "마다", "전", "经过", "経過"];
const AFTER: &[&str] = &[
    "之后", "之後", "以后", "以後", "後に", "後は", "後", "后", "以降に", "以降", "이후에", "이후", "후에",
    "후", "뒤에", "뒤",
];
const AT: &[&str] = &["にて", "に", "から", "에서", "에", "부터"];
const UNTIL: &[&str] = &["まで", "까지"];
const WAITS: &[&str] =
    &["お待ち", "待って", "待つ", "ほどお待ち", "を待", "동안기다", "기다", "대기해", "동안대기"];

const WAIT_BEFORE: &[&str] = &[
    "再試行まで", "还有", "還有", "あと", "残り", "残り時間", "等待", "还需", "還需", "请在", "請在", "请于",
    "請於", "稍等", "남은시간", "剩余时间", "剩餘時間",
];
const RESET_BEFORE: &[&str] = &[
    "リセット", "リセット時刻", "リセットまで", "リセット日時", "重置", "重置时间", "重置時間", "刷新时间",
    "恢复时间", "재설정", "초기화", "초기화시간", "재설정시간",
];
const DENIED_BEFORE: &[&str] = &[
    "正在等待", "正在等", "已等待", "每", "毎", "超过", "超過", "过去", "過去", "最近", "直近", "매", "지난",
    "최근", "正在", "已经", "已經",
];

/// What the text around the bytes `span` makes of the expression there.
pub(super) fn verdict(text: &str, span: &Range<usize>, is_length: bool) -> Verdict {
    let before = squeezed(text.get(..span.start).unwrap_or("").chars().rev());
    let before: String = before.chars().rev().collect();
    let behind = squeezed(text.get(span.end..).unwrap_or("").chars());
    if begins(&behind, WINDOWS).is_some() || ends(&before, DENIED_BEFORE) {
        return Verdict::Denied;
    }
    match verdict_behind(&behind, is_length) {
        Verdict::Wait { .. } if is_own_plan(&before, &behind) => Verdict::Denied,
        Verdict::Open => verdict_before(&before, is_length),
        verdict => verdict,
    }
}

/// The nearest characters up to a full stop, without spaces.
fn squeezed(chars: impl Iterator<Item = char>) -> String {
    chars
        .take(2 * REACH)
        .take_while(|c| !matches!(c, '。' | '！' | '？' | '!' | '?' | '；' | ';'))
        .filter(|c| !c.is_whitespace())
        .take(REACH)
        .collect()
}

fn begins<'t>(text: &'t str, words: &[&str]) -> Option<&'t str> {
    words.iter().find_map(|word| text.strip_prefix(word))
}

fn ends(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.ends_with(word))
}

fn holds(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Whether one of the words comes within the first few characters.
fn soon(text: &str, words: &[&str]) -> bool {
    let head: String = text.chars().take(14).collect();
    holds(&head, words)
}

fn verdict_behind(behind: &str, is_length: bool) -> Verdict {
    if let Some(tail) = begins(behind, AFTER) {
        let plain_future = is_length && behind.starts_with("後に");
        return verdict_after(tail, plain_future);
    }
    if is_length && begins(behind, WAITS).is_some() {
        return Verdict::Wait { reset: false };
    }
    if is_length {
        return Verdict::Open;
    }
    if begins(behind, UNTIL).is_some() {
        return Verdict::Wait { reset: soon(behind, RESETS) };
    }
    let tail = begins(behind, AT).unwrap_or(behind);
    let tail_is_near =
        tail.len() < behind.len() || begins(tail, RESETS).is_some() || begins(tail, AGAIN).is_some();
    if tail_is_near { verdict_after(tail, false) } else { Verdict::Open }
}

fn verdict_after(tail: &str, plain_future: bool) -> Verdict {
    if soon(tail, OWN) || soon(tail, OVER) {
        return Verdict::Denied;
    }
    if soon(tail, RESETS) {
        return Verdict::Wait { reset: true };
    }
    if plain_future || soon(tail, AGAIN) { Verdict::Wait { reset: false } } else { Verdict::Open }
}

/// "将在 5 秒后重试": the system says what it will do.
fn is_own_plan(before: &str, behind: &str) -> bool {
    let will = ends(before, &["将在", "将于", "將在", "會在", "会在"]);
    will && holds(behind, &["重试", "重試"]) && !holds(behind, &["请", "請"])
}

fn verdict_before(before: &str, is_length: bool) -> Verdict {
    let before = before.trim_end_matches([
        ':', '：', 'は', '为', '為', '是', '约', '約', '大', '(', '（', '은', '는', '于', '於',
    ]);
    if ends(before, RESET_BEFORE) {
        return Verdict::Wait { reset: true };
    }
    if is_length && ends(before, WAIT_BEFORE) {
        return Verdict::Wait { reset: false };
    }
    Verdict::Open
}
