//! Any bytes as a config: a config that the core accepts, or problems with their places. Never a panic.
#![no_main]

use koboshi_config::load;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    // `load` touches no disk, whatever the file names.
    match load("folder/koboshi.yaml", &text, &|name| (name == "X").then(|| "value".to_owned())) {
        Ok(config) => {
            assert!(config.remedy.backoff.validate().is_ok());
            assert!(config.breaker.validate().is_ok());
            assert!(config.gate.validate().is_ok());
            assert!(config.cooldown.validate().is_ok());
            assert!(config.guard.policy.validate().is_ok());
            assert!(config.serve.is_loopback() || !config.keys.is_empty());
            assert!(config.routes.values().all(|route| (1..=16).contains(&route.chain.len())));
            let _ = koboshi_config::schema::differences(&config);
        }
        Err(problems) => assert!(problems.iter().all(|problem| problem.place.is_some())),
    }
});
