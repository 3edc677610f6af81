//! Tests of the waits in free text, by family: (text, seconds) at noon UTC on Sunday, 2026-11-15.

use super::*;
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;

const NOW: &str = "2026-11-15T12:00:00Z";

fn read(text: &str, now: &str, zone: &str) -> Option<(f64, bool)> {
    let zones = TimeZoneDatabase::bundled();
    let now = now.parse::<jiff::Timestamp>().unwrap().to_zoned(zones.get(zone).unwrap());
    stated_wait(text, Clock { now: &now, zones: &zones })
        .map(|stated| (stated.wait.after.as_secs_f64(), stated.reset))
}

fn check(table: &[(&str, f64)]) {
    let wrong: Vec<String> = table
        .iter()
        .map(|(text, expected)| (text, expected, read(text, NOW, "UTC").map(|(seconds, _)| seconds)))
        .filter(|(_, expected, got)| *got != Some(**expected))
        .map(|(text, expected, got)| format!("{text}: {expected} expected, {got:?} read"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn countdowns_that_say_until_what() {
    check(&[
        ("Usage limit hit. 3 hours and 5 minutes remaining until your quota resets.", 11_100.0),
        ("5 minutes left until you can try again", 300.0),
    ]);
}

/// The name of a window does not make the time one that has passed: who runs an agent would not wait at all.
#[test]
fn a_time_of_day_is_the_next_such_time_whatever_the_window() {
    for text in [
        "5-hour limit reached ∙ resets 5:10pm", "You've hit your session limit · resets 5:10pm",
        "Your 5-hour session limit is used up.\nIt resets at 17:10.", "Limit reached, resets 5:10pm",
    ] {
        assert_eq!(read(text, "2026-11-18T09:00:00Z", "UTC"), Some((29_400.0, true)), "{text}");
        assert_eq!(read(text, "2026-11-18T15:10:00Z", "UTC"), Some((7_200.0, true)), "{text}");
        assert_eq!(read(text, "2026-11-18T17:10:01Z", "UTC"), Some((86_399.0, true)), "{text}");
    }
    check(&[("5-hour limit reached, resets Nov 18 at 3am", 226_800.0)]);
}

#[test]
fn try_again() {
    check(&[
        ("Please try again in 1.5s. Visit https://example.com/5m to learn more.", 1.5),
        ("try again in 644ms", 0.644),
        ("Please try again in 7m12s.", 432.0),
        ("You can try again in 05:12:30", 18_750.0),
        ("Please try your request again in 20 seconds", 20.0),
        ("Please retry in 36.429760048s.", 36.429_760_048),
        ("Please retry after 9 seconds. Please go here", 9.0),
        ("Please retry after 86400 seconds", 86_400.0),
        ("Please retry after 86,400 seconds", 86_400.0),
        ("retry after 120", 120.0),
        ("Rate limited, retry after 120.", 120.0),
        ("retry after 5000ms", 5.0),
        ("Retry after: 30 seconds", 30.0),
        ("You'll be able to retry in 5 minutes", 300.0),
        ("In 5 minutes, try again.", 300.0),
        ("Try again in 2 hours 10 minutes.", 7800.0),
        ("Try again\n  in   2 hours,\n 10\u{a0}minutes", 7800.0),
        ("rate limits.\\nPlease retry in 22.114s.\"", 22.114),
        ("Try again in an hour", 3600.0),
        ("try again in about 5 minutes", 300.0),
        ("Try again in 1-2 minutes", 120.0),
        ("Come back in 3h 47m — your free usage", 13_620.0),
        ("Attempt failed. Please try again in 3m", 180.0),
        ("Quota exceeded.Try again in 3m", 180.0),
        ("You can send messages again at 5 PM.", 18_000.0),
        ("You have been rate limited for 60 seconds", 60.0),
        ("retry_delay {\n  seconds: 36\n}", 36.0),
    ]);
}

#[test]
fn requests_to_wait() {
    check(&[
        (
            "Rate limit of 10 per 60s exceeded for UserByModelByMinute. Please wait 27 seconds before retrying.",
            27.0,
        ),
        ("Please wait 14 minutes before trying again.", 840.0),
        ("You must wait for 5 minutes", 300.0),
        ("you need to wait at least 30 seconds", 30.0),
        ("Please wait another 10s", 10.0),
        ("You need to wait 30 more seconds", 30.0),
        ("with Retry-After of 30 seconds", 30.0),
        ("The request can be retried after 30s", 30.0),
        ("please allow 30 seconds before retrying", 30.0),
        ("3h 20m until reset", 12_000.0),
        ("Time until reset: 3h 20m", 12_000.0),
    ]);
}

#[test]
fn resets() {
    check(&[
        ("You've hit your session limit · resets 5:10pm (UTC)", 18_600.0),
        ("resets 5:10pm (Europe/Paris)", 15_000.0),
        ("resets at 5 pm", 18_000.0),
        ("Your limit will reset at 4 PM (UTC).", 14_400.0),
        ("Access resets at 10:57 PM GMT-3.", 50_220.0),
        ("resets 7am (Etc/GMT-9)", 36_000.0),
        ("Your quota will reset after 22m55s.", 1375.0),
        ("The weekly limit resets in 5d 5h.", 450_000.0),
        ("resets in 05:12:30", 18_750.0),
        ("Resets in: 05:12:30", 18_750.0),
        ("resets in 29:12:30", 105_150.0),
        ("resets on Nov 16, 2026, 12:08 AM. To continue", 43_680.0),
        ("your free usage resets automatically at midnight Pacific", 72_000.0),
        ("resets Nov 19, 6:47am (UTC)", 326_820.0),
        ("resets Monday at 9am", 75_600.0),
        ("resets tomorrow at 3pm", 97_200.0),
        ("Quota resets on 2026-11-16", 43_200.0),
        ("Limit resets at 2026-11-15T12:00:37Z", 37.0),
        ("The next window opens at 17:00", 18_000.0),
        ("│ 59.8% (Resets in 8h 6m) │", 29_160.0),
        ("requests are allowed again at 2026-11-16T00:00:00+09:00", 10_800.0),
        ("It will be available again at 5pm", 18_000.0),
        ("You can regain access on 2026-11-16", 43_200.0),
        ("You will regain access on 2026-11-16 at 00:00 UTC.", 43_200.0),
        ("or wait until Nov 20, 2026, 4:12 PM.", 447_120.0),
        ("try again after November 17, 2026 at 2:45 PM.", 182_700.0),
        ("try again at 9:23\u{202f}PM.", 33_780.0),
        ("try again at 9:23\\u202fPM.", 33_780.0),
        ("You are blocked until 5pm", 18_000.0),
        ("Please try again after 14:30", 9_000.0),
        ("resets at 12pm", 86_400.0),
        ("resets at 5pm (Mars/Olympus)", 18_000.0),
        ("Your limit resets at 2026-11-14 08:00", 0.0),
    ]);
}

#[test]
fn epochs_and_fields() {
    let now = "2025-10-09T07:15:00Z";
    for text in [
        "Claude AI usage limit reached|1760004000", "resets at 1760004000", "resets at 1760004000000",
        "{\"resetsAt\":1760004000}", "{'resets_at': 1760004000}", "resets_in_seconds: 9900",
        "\\\"resets_in_seconds\\\":9900,", "\"retryDelay\": \"9900s\"", "Retry-After: 9900",
        "retry-after=9900", "{\"retry_after\": 9900}", "Retry-After: Thu, 09 Oct 2025 10:00:00 GMT",
        "retry after Thu, 09 Oct 2025 10:00:00 GMT",
    ] {
        assert_eq!(read(text, now, "UTC").map(|(seconds, _)| seconds), Some(9900.0), "{text}");
    }
}

#[test]
fn other_languages() {
    check(&[
        ("30秒後に再試行してください", 30.0),
        ("30秒後に再試行", 30.0),
        ("17時10分にリセットされます", 18_600.0),
        ("午後5時10分にリセット", 18_600.0),
        ("制限に達しました。あと3時間20分", 12_000.0),
        ("3時間20分後に利用できます", 12_000.0),
        ("17時10分までお待ちください", 18_600.0),
        ("5分お待ちください", 300.0),
        ("11月16日 8時にリセット", 72_000.0),
        ("明日 8:00 にリセット", 72_000.0),
        ("请求过于频繁，请在 30 秒后重试。(429)", 30.0),
        ("已达到每周使用上限，将于 2026年11月16日 08:00 重置。", 72_000.0),
        ("30秒後重試", 30.0),
        ("还需等待5分钟", 300.0),
        ("请等待 5 分钟", 300.0),
        ("将于北京时间下午9点30分重置", 5_400.0),
        ("重置时间：2026-11-16 08:00", 72_000.0),
        ("30초 후에 다시 시도하세요", 30.0),
        ("30초 후 다시 시도해 주세요", 30.0),
        ("오후 5시에 재설정됩니다", 18_000.0),
        ("오후 5시 10분에 초기화", 18_600.0),
        ("내일 오전 8시에 초기화됩니다", 72_000.0),
        ("Bitte versuchen Sie es in 20 Sekunden erneut.", 20.0),
        ("in 5 Minuten erneut versuchen", 300.0),
        ("Das Limit wird um 17:10 Uhr zurückgesetzt.", 18_600.0),
        ("Das Kontingent setzt sich in 3 Stunden zurück", 10_800.0),
        ("Das Limit wird am 16. November 2026 um 17:10 zurückgesetzt", 105_000.0),
        ("Bitte warten Sie 30 Sekunden", 30.0),
        ("Veuillez réessayer dans 5 minutes", 300.0),
        ("réessayez dans 5 minutes", 300.0),
        ("Votre limite sera réinitialisée à 17h10", 18_600.0),
        ("réinitialisé à 17 h 10", 18_600.0),
        ("Réinitialisation le 16 novembre à 8h", 72_000.0),
        ("Limite atteinte, dans 3 heures", 10_800.0),
        ("Inténtelo de nuevo en 5 minutos", 300.0),
        ("inténtalo de nuevo en 5 minutos", 300.0),
        ("vuelve a intentarlo en 5 minutos", 300.0),
        ("se restablece a las 17:10", 18_600.0),
        ("El límite se restablece el 16 de noviembre a las 8:00", 72_000.0),
        ("dentro de 2 horas", 7200.0),
        ("Tente novamente em 5 minutos", 300.0),
        ("O limite será redefinido às 17:10", 18_600.0),
        ("reinicia às 17h", 18_000.0),
        ("daqui a 2 horas", 7200.0),
        ("Riprova tra 5 minuti", 300.0),
        ("Si prega di riprovare tra 30 secondi.", 30.0),
        ("Il limite verrà reimpostato alle 17:10", 18_600.0),
        ("Attendere 2 ore", 7200.0),
        ("Повторите попытку через 5 минут.", 300.0),
        ("Попробуйте снова через 2 часа", 7200.0),
        ("Лимит сбросится в 17:10", 18_600.0),
        ("Подождите 30 секунд", 30.0),
        ("Lütfen 5 dakika sonra tekrar deneyin.", 300.0),
        ("Lütfen 30 saniye bekleyin", 30.0),
        ("Sınırınız 2 saat içinde sıfırlanacak", 7200.0),
        ("Vui lòng thử lại sau 5 phút.", 300.0),
        ("Hãy thử lại trong 2 giờ", 7200.0),
        ("Silakan coba lagi dalam 5 menit.", 300.0),
        ("Coba lagi setelah 30 detik", 30.0),
        ("Harap tunggu 2 jam", 7200.0),
        ("Spróbuj ponownie za 5 minut.", 300.0),
        ("Spróbuj ponownie za 2 godziny", 7200.0),
        ("Limit zostanie zresetowany o 17:10", 18_600.0),
        ("Probeer het over 5 minuten opnieuw.", 300.0),
        ("Probeer het opnieuw na 2 uur", 7200.0),
        ("Wacht 30 seconden", 30.0),
        ("De limiet wordt om 17:10 gereset", 18_600.0),
        ("本日17:10にリセットされます", 18_600.0),
        ("午後5時10分以降にもう一度お試しください。", 18_600.0),
        ("レート制限。17:10以降にお試しください", 18_600.0),
        ("レート制限。17時10分以降にお試しください", 18_600.0),
        ("リセット時刻: 17:10", 18_600.0),
        ("再試行まで5分", 300.0),
        ("请等待约5分钟后再试", 300.0),
        ("距离重置还有5分钟", 300.0),
        ("将于明天 08:00 重置", 72_000.0),
        ("2026년 11월 16일 오전 8시에 재설정", 72_000.0),
        ("5분 기다린 후 다시 시도하세요", 300.0),
        ("Ihr Limit wird am Montag um 8:00 Uhr zurückgesetzt", 72_000.0),
        ("Votre limite sera réinitialisée demain à 8h", 72_000.0),
        ("Veuillez patienter 5 minutes avant de réessayer", 300.0),
        ("El límite se restablece mañana a las 8:00", 72_000.0),
        ("Seu limite será redefinido amanhã às 8h", 72_000.0),
    ]);
}

#[test]
fn what_states_no_wait() {
    let table = [
        "Retrying in 4 seconds… (attempt 4/10)",
        "retrying 1/5 in 210ms",
        "Retrying in 39 seconds",
        "will retry in 5s",
        "We'll retry in 5s",
        "I will automatically retry in 5s",
        "Auto-retry in 5s",
        "Next retry in 5s",
        "Retry 2/5 in 4s",
        "Retry attempt 3 in 8s",
        "Reconnecting... 1/5",
        "Attempt 2 failed with status 429, retrying after 5000ms",
        "backing off for 8s",
        "sleeping 10s",
        "Sleeping 10s before retrying",
        "Waiting 30 seconds before retry",
        "waited 5s before trying again",
        "10 per 60s",
        "limit of 5 requests per 1 minute",
        "Please respond within 5 minutes",
        "try again within 5 minutes",
        "timed out after 30 seconds",
        "Request timed out after 30 seconds, please try again",
        "No response in 60 seconds, please retry",
        "took 4.2s",
        "after 120000ms",
        "certificate is not valid after 1794657600 (86400 seconds ago)",
        "Failed after 4 attempts. Last error: Too Many Requests",
        "retry after 3 attempts",
        "Please retry in a few seconds.",
        "please try again later",
        "try again in a moment",
        "try again shortly",
        "Please try signing in again., url: http://127.0.0.1:8970/v1/responses",
        "Connection reset by peer in 5 seconds",
        "\"retry_delay_ms\":590.1547079182922",
        "anthropic-ratelimit-unified-reset: 1785060000",
        "x-ratelimit-reset-requests: 1s",
        "valid until 2027-01-01",
        "30秒後に再試行します",
        "30秒後にタイムアウトしました",
        "5分以内に再試行",
        "系统将在 30 秒后重试",
        "30초 후 재시도합니다",
        "Wird in 5 Sekunden erneut versucht",
        "Nouvelle tentative dans 5 secondes",
        "Reintentando en 5 segundos",
        "send the message again once the limit resets\n2026-11-15T11:00:00Z INFO done",
        "quota exhausted. Please wait.",
        "please try again later\n12:00:01 INFO done",
        "the limit resets\n[12:00:01] INFO done",
        "Checking again in 5s",
        "5分ごとにリセットされます",
        "5分前にリセットされました",
        "每5分钟重置",
        "正在等待5分钟",
        "5秒后自动重试",
        "5초마다 재시도",
        "Nova tentativa em 5 segundos",
        "Tiempo de espera agotado después de 30 segundos",
        "Retried after 5s",
        "Reset connection after 30s",
        "Rate limit exceeded: 100 requests in 5 hours",
        "available at http://localhost:3000",
        "Trying again in 30s",
        "Will try again in 30s.",
        "Let me wait 30 seconds and see",
        "resets every 5 hours",
        "Max retries exceeded after 30s",
        "Retry scheduled in 30s",
        "Rate limit hit, waiting 60s",
        "",
    ];
    let wrong: Vec<_> =
        table.iter().map(|text| (text, read(text, NOW, "UTC"))).filter(|(_, got)| got.is_some()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn resets_are_distinguished_from_requests_to_retry() {
    for (text, reset) in [
        ("resets at 5pm", true),
        ("try again at 5pm", false),
        ("wait 5 minutes", false),
        ("retry after 5s", false),
        ("usage limit reached|1894838400", true),
        ("17時10分にリセット", true),
        ("30秒後に再試行", false),
    ] {
        assert_eq!(read(text, NOW, "UTC").map(|(_, reset)| reset), Some(reset), "{text}");
    }
}

#[test]
fn the_first_wait_counts_but_of_resets_the_latest() {
    check(&[
        ("Try again in 5s. The limit resets in 2h.", 5.0),
        ("5-hour limit resets 5pm; weekly limit resets Nov 17, 8am", 158_400.0),
        ("Your limit resets at 17:10. Your plan renews on Dec 1.", 18_600.0),
        ("Session resets in 3h. Weekly resets in 2d. Daily resets in 5h.", 172_800.0),
    ]);
}

#[test]
fn the_span_is_that_of_the_expression() {
    let zones = TimeZoneDatabase::bundled();
    let now = "2026-11-15T12:00:00[UTC]".parse().unwrap();
    for (text, expression) in [
        ("· resets 5:10pm (Europe/Paris).", "5:10pm (Europe/Paris)"),
        ("🦀 Please try again in 7m12s.", "7m12s"),
        ("请在 30 秒后重试", "30 秒"),
        ("\"retryDelay\": \"36s\"", "36s"),
    ] {
        let stated = stated_wait(text, Clock { now: &now, zones: &zones }).unwrap();
        assert_eq!(&text[stated.span], expression);
    }
}

#[test]
fn absurd_numbers_are_clamped() {
    check(&[
        ("retry after 99999999999999999999 seconds", 31_622_400.0),
        ("retry after 99999999999999999999", 31_622_400.0),
        ("resets at 9999999999999", 31_622_400.0),
        ("try again in 999999999999 weeks", 31_622_400.0),
    ]);
}

#[test]
fn a_large_hostile_text_is_read_in_time() {
    let pieces = [
        "resets at ", "try again in ", "5 ", "(", "|1", "until until ", "\\u", "P1", "2026-", "後に", "1.",
        "a las ", "retry-after: ", "dans dans ", "111,", "again ", "Pacific time ",
    ];
    for piece in pieces {
        let text = piece.repeat(200_000 / piece.len());
        assert!(stated_count(&text) <= MAX_WAITS, "{piece}");
    }
}

fn stated_count(text: &str) -> usize {
    let zones = TimeZoneDatabase::bundled();
    let now = "2026-11-15T12:00:00[UTC]".parse().unwrap();
    stated_waits(text, Clock { now: &now, zones: &zones }).len()
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in ".{0,300}") {
        prop_assert!(stated_count(&text) <= MAX_WAITS);
    }

    #[test]
    fn any_row_of_known_words_is_read_without_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "try again", "resets", "in", "at", "until", "5", "17:10", "05:12:30", "pm", "(", ")", "UTC", "+", "-", "09:00",
                "May", "30", "2026", ",", "後に", "時", "分", "秒", "リセット", "h", "m", "s", "GMT", "dans", "à", "|", "1760004000",
                "Feb 29", "Monday", "tomorrow", "99999999999999999999", "\n", "retry-after:", "\"", "Europe/Paris", "24:00", ".",
            ]),
            0..30,
        ),
        glue in prop::sample::select(vec!["", " "]),
    ) {
        let text = words.join(glue);
        let zones = TimeZoneDatabase::bundled();
        let now = "2026-11-15T12:00:00[America/New_York]".parse().unwrap();
        for stated in stated_waits(&text, Clock { now: &now, zones: &zones }) {
            prop_assert!(text.get(stated.span).is_some_and(|text| !text.is_empty()));
            prop_assert!(stated.wait.after <= crate::wait::MAX_WAIT);
        }
    }
}
