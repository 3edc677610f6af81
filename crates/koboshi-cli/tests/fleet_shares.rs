//! What several gateways share out among them: a provider's limit, a key's rate, the time, and one config.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::served::Served;
use koboshi_sim::{Ask, Head, Play, play};
use koboshi_testkit::questions::chat;
use koboshi_testkit::{RedisServer, Upstream, until};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// A file of a folder, or a Redis.
struct Place {
    folder: TempDir,
    redis: Option<RedisServer>,
}

impl Place {
    /// On a file and on a Redis.
    fn on_both(test: impl Fn(&Self)) {
        for redis in [None, Some(RedisServer::start())] {
            test(&Self { folder: tempfile::tempdir().unwrap(), redis });
        }
    }

    fn store(&self) -> PathBuf {
        match &self.redis {
            Some(redis) => redis.url().into(),
            None => self.folder.path().join("store.db"),
        }
    }

    fn config(&self, name: &str, config: &Value) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }
}

fn know_each_other(gateways: &[Served]) {
    let line = format!("koboshi_gateways {}", gateways.len());
    until("every gateway knows of the others", || {
        let knows = |gateway: &Served| gateway.get("/metrics").text().lines().any(|one| one == line);
        gateways.iter().all(knows).then_some(())
    });
}

fn with_provider(provider: &Upstream, chain: &Value) -> Value {
    json!({
        "serve": {"threads": 1},
        "providers": {"one": {"kind": "openai", "base_url": provider.url(), "keys": ["sk-own"]}},
        "routes": {"m": chain},
    })
}

/// The limit of the provider, which comes back in ten minutes.
const LIMIT: u64 = 20;

/// Refuses what is above the limit, and states in each answer what is left.
fn limited(provider: &Upstream, refused: &Arc<AtomicU64>) {
    let (used, refused) = (AtomicU64::new(0), Arc::clone(refused));
    provider.set("limited", move |ask| {
        let left = LIMIT.checked_sub(used.fetch_add(1, Ordering::SeqCst) + 1);
        if left.is_none() {
            refused.fetch_add(1, Ordering::SeqCst);
        }
        let model = if left.is_some() { "ok?latency=300ms" } else { "rate-429?retry_after=10m" };
        let answer = play(&Ask { model, ..*ask });
        let (Head::Answer { after, status, mut headers }, Some(left)) = (answer.head.clone(), left) else {
            return answer;
        };
        headers.retain(|(name, _)| !name.starts_with("x-ratelimit"));
        headers.extend([
            ("x-ratelimit-limit-requests", LIMIT.to_string()),
            ("x-ratelimit-remaining-requests", left.to_string()),
            ("x-ratelimit-reset-requests", "10m0s".to_owned()),
        ]);
        Play { head: Head::Answer { after, status, headers }, ..answer }
    });
}

#[test]
fn two_gateways_together_stay_below_the_limit_that_the_provider_states() {
    Place::on_both(|place| {
        let (provider, refused) = (Upstream::start(), Arc::new(AtomicU64::new(0)));
        limited(&provider, &refused);
        let config =
            place.config("koboshi.yaml", &with_provider(&provider, &json!(["one/limited", "sim/ok"])));
        let gateways = [0, 1].map(|_| Served::start(&config, &place.store()));
        know_each_other(&gateways);
        for gateway in &gateways {
            assert_eq!(gateway.post(&chat(false), &[]).header("x-koboshi-target"), Some("one/limited"));
        }
        std::thread::scope(|scope| {
            for client in 0..48 {
                let gateway = &gateways[client % 2];
                scope.spawn(move || assert_eq!(gateway.post(&chat(false), &[]).status, 200));
            }
        });
        let asked = provider.all_calls();
        assert_eq!(refused.load(Ordering::SeqCst), 0, "of {asked} calls the provider refused some");
        assert!(asked > LIMIT * 3 / 4, "only {asked} of {LIMIT} were used");
    });
}

#[test]
fn the_rate_of_a_key_counts_over_all_gateways() {
    Place::on_both(|place| {
        let provider = Upstream::start();
        let mut config = with_provider(&provider, &json!(["one/ok"]));
        let hash: String =
            Sha256::digest(b"key-of-a-client").iter().map(|byte| format!("{byte:02x}")).collect();
        config["keys"] = json!({"laptop": {"sha256": hash, "rate": 4}});
        let config = place.config("koboshi.yaml", &config);
        let gateways = [0, 1].map(|_| Served::start(&config, &place.store()));
        let ask = |nth: usize| {
            gateways[nth % 2].post(&chat(false), &[("authorization", "Bearer key-of-a-client")]).status
        };
        // A minute of the clock may end in between: then the count begins again.
        until("the other gateway refuses what this one has used up", || {
            let served = (0..60).take_while(|_| ask(0) == 200).count();
            assert!(served <= 8, "{served} in two minutes at most");
            until("the store has the count", || (ask(1) == 429 || ask(0) == 200).then_some(()));
            (ask(1) == 429).then_some(())
        });
    });
}

/// A library that sets the clock of a process ahead; none where no compiler is there.
fn ahead(folder: &Path, seconds: i64) -> Option<PathBuf> {
    let (source, library) = (folder.join("ahead.c"), folder.join("ahead.so"));
    let text = format!(
        "#define _GNU_SOURCE\n#include <time.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n\
         int clock_gettime(clockid_t which, struct timespec *time) {{\n\
         long done = syscall(SYS_clock_gettime, which, time);\n\
         if (done == 0 && which == CLOCK_REALTIME) time->tv_sec += {seconds};\n\
         return (int)done;\n}}\n"
    );
    std::fs::write(&source, text).ok()?;
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().ok()?;
    built.success().then_some(library)
}

/// On a Redis the gateways go by its clock.
#[test]
fn clocks_that_differ_by_ninety_seconds_do_no_harm() {
    let place = Place { folder: tempfile::tempdir().unwrap(), redis: Some(RedisServer::start()) };
    for seconds in [90, -90] {
        let library = ahead(place.folder.path(), seconds).expect("a C compiler is there");
        let provider = Upstream::start();
        let config = place.config(
            "koboshi.yaml",
            &with_provider(&provider, &json!(["one/quota?retry_after=none", "sim/ok"])),
        );
        let skewed = [("LD_PRELOAD", library.to_str().unwrap())];
        let gateways =
            [Served::start_with(&config, &place.store(), &skewed), Served::start(&config, &place.store())];
        know_each_other(&gateways);
        let [ahead, right] = &gateways;
        // How long the account rests is a guess of the one whose clock is wrong, and the other obeys it.
        assert_eq!(ahead.post(&chat(false), &[]).header("x-koboshi-attempts"), Some("2"));
        until("the other gateway knows of the rest", || {
            right.get("/koboshi/status").text().contains("quota").then_some(())
        });
        let before = provider.all_calls();
        assert_eq!(right.post(&chat(false), &[]).header("x-koboshi-target"), Some("sim/ok"));
        assert_eq!(provider.all_calls(), before, "it asked in the rest");
        let resume = common::run(&["resume", "--all", "--store", &place.store().display().to_string()]);
        assert_eq!(resume.status, 0, "{}{}", resume.text, resume.error);
        until("the provider is asked again", || {
            let asked = provider.all_calls();
            gateways.iter().for_each(|gateway| drop(gateway.post(&chat(false), &[])));
            (provider.all_calls() > asked).then_some(())
        });
        place.redis.as_ref().unwrap().order("FLUSHALL");
    }
}

#[test]
fn status_says_that_gateways_do_not_run_the_same_config() {
    let place = Place { folder: tempfile::tempdir().unwrap(), redis: None };
    let provider = Upstream::start();
    let same = with_provider(&provider, &json!(["one/ok"]));
    let mut other = same.clone();
    other["gate"] = json!({"stagger": "51ms"});
    let config = place.config("koboshi.yaml", &same);
    let gateways = [0, 1].map(|_| Served::start(&config, &place.store()));
    know_each_other(&gateways);
    let status = || {
        let store = place.store().display().to_string();
        let [english, japanese] =
            ["en", "ja"].map(|lang| common::run(&["status", "--store", &store, "--lang", lang]));
        (
            english.text.contains("do not run the same config"),
            japanese.text.contains("設定が一致していません"),
        )
    };
    assert_eq!(status(), (false, false));
    let [one, _two] = &gateways;
    let third = Served::start(&place.config("other.yaml", &other), &place.store());
    until("the third is counted", || one.get("/metrics").text().contains("koboshi_gateways 3").then_some(()));
    assert_eq!(status(), (true, true));
    drop(third);
}

#[test]
fn every_key_in_a_redis_begins_with_the_prefix() {
    let place = Place { folder: tempfile::tempdir().unwrap(), redis: Some(RedisServer::start()) };
    let mut config = with_provider(&Upstream::start(), &json!(["one/ok"]));
    config["store"] = json!({"redis": place.store(), "prefix": "mine:"});
    let _gateway = Served::start(&place.config("koboshi.yaml", &config), &place.store());
    until("the gateway has reported", || {
        let own = place.redis.as_ref().unwrap().ask("KEYS *mine:*");
        (!own.starts_with("*0")).then_some(())
    });
    let usual = place.redis.as_ref().unwrap().ask("KEYS *koboshi:*");
    assert!(usual.starts_with("*0"), "{usual}");
}
