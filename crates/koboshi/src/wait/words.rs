//! The words for units, numbers, months and days in fifteen languages.
//!
//! Plain `match` tables: the compiler checks them for doubles, a reader can find a word with a text search,
//! and adding a language is adding arms. Words come in folded by [`super::token`]: small letters, no accents.
//!
//! What is *not* here: the words around an expression that make it a wait. Those are in [`super::cue`].

use jiff::civil::Weekday;

/// A unit of time, from short to long. Months and years are the usual round numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Nano,
    Micro,
    Milli,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    pub(super) fn nanos(self) -> u128 {
        const SECOND: u128 = 1_000_000_000;
        const DAY: u128 = 86_400 * SECOND;
        match self {
            Self::Nano => 1,
            Self::Micro => 1_000,
            Self::Milli => 1_000_000,
            Self::Second => SECOND,
            Self::Minute => 60 * SECOND,
            Self::Hour => 3_600 * SECOND,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 30 * DAY,
            Self::Year => 365 * DAY,
        }
    }
}

pub(super) fn unit(word: &str) -> Option<Unit> {
    Some(match word {
        "ns" | "nsec" | "nanosecond" | "nanoseconds" | "nanos" => Unit::Nano,
        "us" | "usec" | "microsecond" | "microseconds" | "micros" => Unit::Micro,
        "ms" | "msec" | "msecs" | "milli" | "millis" | "millisecond" | "milliseconds" | "millisekunde"
        | "millisekunden" | "milliseconde" | "millisecondes" | "milisegundo" | "milisegundos"
        | "milissegundo" | "milissegundos" | "мс" | "毫秒" | "ミリ秒" | "밀리초" => Unit::Milli,
        "s" | "sec" | "secs" | "second" | "seconds" | "sek" | "sekunde" | "sekunden" | "seconde"
        | "secondes" | "seg" | "segs" | "segundo" | "segundos" | "secondo" | "secondi" | "seconden"
        | "сек" | "секунд" | "секунды" | "секунду" | "saniye" | "giay" | "detik" | "sekund" | "sekundy"
        | "sekundę" | "秒" | "秒間" | "秒钟" | "秒鐘" | "초" | "초간" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" | "minuten" | "minuto" | "minutos" | "mn" | "minuti"
        | "minuut" | "мин" | "минут" | "минуты" | "минуту" | "dakika" | "phut" | "menit" | "minut"
        | "minuty" | "minutę" | "分" | "分間" | "分钟" | "分鐘" | "분" | "분간" => Unit::Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" | "std" | "stunde" | "stunden" | "heure" | "heures"
        | "hora" | "horas" | "ora" | "ore" | "uur" | "час" | "часа" | "часов" | "saat" | "giờ" | "jam"
        | "godz" | "godzin" | "godziny" | "godzinę" | "時間" | "小时" | "小時" | "个小时" | "個小時"
        | "時" | "时" | "시간" => Unit::Hour,
        "d" | "day" | "days" | "tag" | "tage" | "tagen" | "jour" | "jours" | "j" | "dia" | "dias"
        | "giorno" | "giorni" | "dagen" | "день" | "дня" | "дней" | "gun" | "ngay" | "hari" | "dni"
        | "日" | "日間" | "天" | "일" | "일간" => Unit::Day,
        "w" | "wk" | "wks" | "week" | "weeks" | "woche" | "wochen" | "semaine" | "semaines" | "semana"
        | "semanas" | "settimana" | "settimane" | "weken" | "неделю" | "недели" | "недель" | "hafta"
        | "tuần" | "minggu" | "tygodnie" | "週間" | "週" | "周" | "个星期" | "星期" | "주" | "주일"
        | "주간" => Unit::Week,
        "month" | "months" | "monat" | "monate" | "monaten" | "mois" | "mes" | "meses" | "ヶ月" | "か月"
        | "个月" | "個月" | "개월" => Unit::Month,
        "year" | "years" | "jahr" | "jahre" | "jahren" | "an" | "ans" | "annee" | "annees" | "ano"
        | "anos" => Unit::Year,
        _ => return None,
    })
}

/// Whether a word alone can begin a time: a day of the week, "tomorrow", "noon".
pub(super) fn names_day_or_hour(word: &str) -> bool {
    weekday(word).is_some() || day_offset(word).is_some() || named_hour(word).is_some()
}

/// Numbers that are written as words, in halves: `half` is 1, `two` is 4.
pub(super) fn halves(word: &str) -> Option<u64> {
    Some(match word {
        "half" | "半" | "halbe" | "halben" | "demi" | "media" | "meia" => 1,
        "a" | "an" | "one" | "ein" | "eine" | "einer" | "einem" | "un" | "une" | "una" | "uno" | "um"
        | "uma" | "一" => 2,
        "two" | "zwei" | "deux" | "dos" | "dois" | "duas" | "二" | "两" | "兩" => 4,
        "three" | "drei" | "trois" | "tres" | "三" => 6,
        "four" | "vier" | "quatre" | "cuatro" | "quatro" | "四" => 8,
        "five" | "funf" | "cinq" | "cinco" | "五" => 10,
        "six" | "sechs" | "seis" | "六" => 12,
        "seven" | "sieben" | "sept" | "siete" | "sete" | "七" => 14,
        "eight" | "acht" | "huit" | "ocho" | "oito" | "八" => 16,
        "nine" | "neun" | "neuf" | "nueve" | "nove" | "九" => 18,
        "ten" | "zehn" | "dix" | "diez" | "dez" | "十" => 20,
        "twelve" => 24,
        "fifteen" => 30,
        "twenty" => 40,
        "thirty" => 60,
        "forty" => 80,
        "sixty" => 120,
        "ninety" => 180,
        _ => return None,
    })
}

pub(super) fn month(word: &str) -> Option<i8> {
    Some(match word {
        "jan" | "january" | "januar" | "janner" | "janvier" | "janv" | "enero" | "ene" | "janeiro" => 1,
        "feb" | "february" | "februar" | "fevrier" | "fevr" | "febrero" | "fevereiro" | "fev" => 2,
        "mar" | "march" | "marz" | "mars" | "marzo" | "marco" => 3,
        "apr" | "april" | "avril" | "avr" | "abril" | "abr" => 4,
        "may" | "mai" | "mayo" | "maio" => 5,
        "jun" | "june" | "juni" | "juin" | "junio" | "junho" => 6,
        "jul" | "july" | "juli" | "juillet" | "juil" | "julio" | "julho" => 7,
        "aug" | "august" | "aout" | "agosto" | "ago" => 8,
        "sep" | "sept" | "september" | "septembre" | "septiembre" | "setembro" => 9,
        "oct" | "october" | "oktober" | "okt" | "octobre" | "octubre" | "outubro" => 10,
        "nov" | "november" | "novembre" | "noviembre" | "novembro" => 11,
        "dec" | "december" | "dezember" | "dez" | "decembre" | "diciembre" | "dic" | "dezembro" => 12,
        _ => return None,
    })
}

pub(super) fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "mon" | "monday" | "montag" | "lundi" | "lunes" | "月曜日" | "月曜" | "星期一" | "周一" | "週一"
        | "월요일" => Weekday::Monday,
        "tue" | "tues" | "tuesday" | "dienstag" | "mardi" | "martes" | "火曜日" | "火曜" | "星期二"
        | "周二" | "週二" | "화요일" => Weekday::Tuesday,
        "wed" | "weds" | "wednesday" | "mittwoch" | "mercredi" | "miercoles" | "水曜日" | "水曜"
        | "星期三" | "周三" | "週三" | "수요일" => Weekday::Wednesday,
        "thu" | "thur" | "thurs" | "thursday" | "donnerstag" | "jeudi" | "jueves" | "木曜日" | "木曜"
        | "星期四" | "周四" | "週四" | "목요일" => Weekday::Thursday,
        "fri" | "friday" | "freitag" | "vendredi" | "viernes" | "金曜日" | "金曜" | "星期五" | "周五"
        | "週五" | "금요일" => Weekday::Friday,
        "sat" | "saturday" | "samstag" | "samedi" | "sabado" | "土曜日" | "土曜" | "星期六" | "周六"
        | "週六" | "토요일" => Weekday::Saturday,
        "sun" | "sunday" | "sonntag" | "dimanche" | "domingo" | "日曜日" | "日曜" | "星期日" | "星期天"
        | "周日" | "週日" | "일요일" => Weekday::Sunday,
        _ => return None,
    })
}

/// Days counted from today.
pub(super) fn day_offset(word: &str) -> Option<i8> {
    Some(match word {
        "today" | "tonight" | "heute" | "hoy" | "hoje" | "今日" | "本日" | "今天" | "오늘" => 0,
        "tomorrow" | "morgen" | "demain" | "manana" | "amanha" | "明日" | "明天" | "내일" => 1,
        "明後日" | "后天" | "後天" | "모레" => 2,
        _ => return None,
    })
}

/// The half of the day, as written before the hour.
pub(super) fn half_day(word: &str) -> Option<bool> {
    Some(match word {
        "午前" | "上午" | "早上" | "凌晨" | "오전" | "새벽" => false,
        "午後" | "下午" | "晚上" | "오후" | "저녁" => true,
        _ => return None,
    })
}

/// Hours that have a name.
pub(super) fn named_hour(word: &str) -> Option<i8> {
    Some(match word {
        "noon" | "midday" | "midi" | "mittag" | "mediodia" | "正午" | "中午" | "정오" => 12,
        "midnight" | "minuit" | "mitternacht" | "medianoche" | "午夜" | "零点" | "零點" | "자정" => 0,
        _ => return None,
    })
}

/// The words that texts without spaces are cut by; the longest that fits wins.
///
/// Only words whose *pieces* would be misread need to be here (`시도` must not yield the hour `시`), besides
/// every word of the tables above.
pub(super) const CJK: &[&str] = &[
    "ミリ秒", "毫秒", "밀리초", "秒", "秒間", "秒钟", "秒鐘", "초", "초간", "초기화", "分", "分間", "分钟",
    "分鐘", "분", "분간", "時間", "小时", "小時", "个小时", "個小時", "時", "时", "时间", "点", "點", "点钟",
    "點鐘", "시간", "시", "시도", "다시", "재시도", "日", "日間", "天", "일", "일간", "号", "號", "週間",
    "週", "周", "星期", "个星期", "주", "주일", "주간", "ヶ月", "か月", "个月", "個月", "개월", "年", "년",
    "月", "월", "半", "반", "一", "二", "两", "兩", "三", "四", "五", "六", "七", "八", "九", "十", "月曜日",
    "月曜", "火曜日", "火曜", "水曜日", "水曜", "木曜日", "木曜", "金曜日", "金曜", "土曜日", "土曜",
    "日曜日", "日曜", "星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日", "星期天", "周一",
    "周二", "周三", "周四", "周五", "周六", "周日", "週一", "週二", "週三", "週四", "週五", "週六", "週日",
    "월요일", "화요일", "수요일", "목요일", "금요일", "토요일", "일요일", "今日", "本日", "今天", "오늘",
    "明日", "明天", "내일", "明後日", "后天", "後天", "모레", "午前", "午後", "上午", "下午", "早上", "晚上",
    "凌晨", "오전", "오후", "새벽", "저녁", "正午", "中午", "午夜", "零点", "零點", "정오", "자정",
    "北京时间", "北京時間", "日本時間", "한국시간", "太平洋时间", "太平洋時間", "后", "後", "と",
];

/// The length in bytes of the longest known word that `text` begins with.
pub(super) fn cjk_word_length(text: &str) -> Option<usize> {
    CJK.iter().filter(|word| text.starts_with(**word)).map(|word| word.len()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_in_order_of_length() {
        let words = ["ns", "us", "ms", "s", "m", "h", "d", "w", "month", "year"];
        let units: Vec<Unit> = words.iter().filter_map(|word| unit(word)).collect();
        assert!(units.windows(2).all(|pair| pair[0] < pair[1] && pair[0].nanos() < pair[1].nanos()));
        assert_eq!(units.len(), words.len());
    }

    #[test]
    fn the_longest_word_wins() {
        assert_eq!(cjk_word_length("時間後"), Some("時間".len()));
        assert_eq!(cjk_word_length("時10分"), Some("時".len()));
        assert_eq!(cjk_word_length("猫"), None);
    }
}
