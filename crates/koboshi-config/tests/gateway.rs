//! The gateway's keys: what entries mean, what is held against each other, and what is said when it does not fit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::time::Duration;

use koboshi::guard::{Act, Effect, GuardPolicy, Rule, RulePolicy, ToolPolicy};
use koboshi_config::check::Problems;
use koboshi_config::gateway::{CacheMode, Commit, GuardMode, KeepAlive, ProviderDialect, ProviderKind};
use koboshi_config::schema::differences;
use koboshi_config::{Config, load};

const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn lookup(name: &str) -> Option<String> {
    matches!(name, "KEY" | "OPENAI_API_KEY" | "GEMINI_API_KEY").then(|| "sk-hunter2".to_owned())
}

fn good(text: &str) -> Config {
    load("/etc/koboshi.yaml", text, &lookup).unwrap_or_else(|problems| panic!("{text}\n{problems}"))
}

fn bad(text: &str) -> Problems {
    let problems = load("koboshi.yaml", text, &lookup).unwrap_err();
    assert!(!format!("{problems}{problems:?}").contains("hunter2"), "{problems}");
    problems
}

/// The only problem: where it is, its key, and what is said.
fn only(text: &str) -> ((u64, u64), String, String) {
    let problems = bad(text);
    assert_eq!(problems.count(), 1, "{problems}");
    let problem = problems.iter().next().unwrap();
    let place = problem.place.unwrap();
    let said = format!("{} | {}", problem.message, problem.hint.as_deref().unwrap_or_default());
    ((place.line, place.column), problem.path.clone(), said)
}

// ===== What the keys mean =====

#[test]
fn a_whole_gateway_is_read() {
    let text = format!(
        r#"
serve: {{listen: "[::1]:0", allowed_hosts: [Koboshi.Example], keep_alive: {{style: frame, interval: 2s}}, threads: 3, first_byte_hold: 0s}}
keys: {{alice: {{sha256: {}, tenant: research}}, bob: {{sha256: {}}}}}
providers:
  mira:
    kind: deepseek
    base_url: https://host.example/v1
    keys: ["${{KEY}}", plain]
    timeouts: {{connect: 5s, total: 2m}}
routes:
  gpt-4.1: ["mira/{{model}}", "sim/rate-429?retry_after=2"]
  "*": {{chain: [sim/ok], commit: complete, guard: off, simple_model: mira/small, cache: serve}}
models:
  mira/*: {{context_window: 1000, tools: false, timeouts: {{first_token: 1m}}}}
degrade: {{answers_file: a.yaml, status: 503, cache: {{mode: fallback, ttl: 5m}}}}
"#,
        HASH.to_uppercase(),
        HASH.replace('9', "8"),
    );
    let config = good(&text);
    assert_eq!((config.serve.listen.to_string().as_str(), config.serve.threads), ("[::1]:0", Some(3)));
    assert_eq!(config.serve.hosts, ["koboshi.example"], "names of hosts have no capitals");
    assert_eq!(config.serve.keep_alive, KeepAlive::Frame);
    assert_eq!(config.keys["alice"].sha256, HASH, "a hash has none either");
    assert_eq!(config.keys["alice"].tenant.as_deref(), Some("research"));
    let mira = &config.providers["mira"];
    assert_eq!(
        (mira.kind, mira.keys[0].expose(), mira.keys.len()),
        (ProviderKind::Deepseek, "sk-hunter2", 2)
    );
    assert_eq!(mira.timeouts.total, Some(Duration::from_secs(120)));
    assert_eq!(config.routes["gpt-4.1"].chain, ["mira/{model}", "sim/rate-429?retry_after=2"]);
    let all = &config.routes["*"];
    assert_eq!(
        (all.commit, all.guard, all.cache),
        (Commit::Complete, Some(GuardMode::Off), Some(CacheMode::Serve))
    );
    assert_eq!(
        (config.models["mira/*"].facts.context_window, config.models["mira/*"].facts.tools),
        (Some(1000), Some(false))
    );
    assert_eq!(config.degrade.answers_file.as_deref(), Some(std::path::Path::new("/etc/a.yaml")));
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn what_differs_is_said_by_entry_and_without_secrets() {
    let config = good(
        "providers: {b: {kind: sim}, a: {kind: openai, keys: ['${KEY}', x]}}\nroutes: {gpt-4.1: [sim/ok]}\nguard: {tools: {x: {unlimited: true}, y: {cycle: off}}}",
    );
    let said: Vec<String> = differences(&config)
        .iter()
        .map(|one| format!("{} {} {}", one.path, one.value, one.default))
        .collect();
    let wanted = [
        "providers.a.kind openai none", "providers.a.keys [***, ***] []", "providers.b.kind sim none",
        "routes.gpt-4.1.chain [sim/ok] none", "guard.tools.x.unlimited true false",
        "guard.tools.y.cycle.limit 4 as for all tools", "guard.tools.y.cycle.action off as for all tools",
    ];
    assert_eq!(said, wanted);
}

#[test]
fn a_key_that_was_taken_for_a_name_is_not_shown() {
    let key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ";
    let config = good(&format!("keys: {{{key}: {{sha256: {HASH}}}}}"));
    assert!(!format!("{:?}", differences(&config)).contains("abcdefgh"));
    assert!(!bad(&format!("keys: {{{key}: {{}}}}")).to_string().contains("abcdefgh"));
}

#[test]
fn the_guard_has_general_rules_and_those_of_tools() {
    let config = good(
        "guard:\n  mode: observe\n  depth: off\n  same_call: {limit: 6, action: note}\n  cycle: off\n  tools:\n    poll job: {effect: waits, same_call: {limit: 50}}\n    dice: {unlimited: true, any_errors: {limit: 4}, stagnation: {action: note}}\n    build: {cycle: {limit: 5}, same_call: off}\n",
    );
    let policy = &config.guard.policy;
    assert!(config.guard.mode == GuardMode::Observe && policy.observe, "the policy agrees with the mode");
    assert_eq!((policy.depth.limit, policy.depth.act), (20, Act::Off), "the limit stays");
    let rule = |rule, tool| policy.rule(rule, tool);
    assert_eq!(
        rule(Rule::SameCall, "poll job"),
        RulePolicy::note(50),
        "what is not said is as for all tools"
    );
    assert_eq!(policy.tools["poll job"].effect, Some(Effect::Waits));
    assert_eq!(rule(Rule::AnyErrors, "dice"), RulePolicy::stop(4), "a limit turns the rule on");
    assert_eq!(
        rule(Rule::Stagnation, "dice"),
        RulePolicy::note(10),
        "and without one it has the general limit"
    );
    assert_eq!(rule(Rule::SimilarErrors, "dice"), RulePolicy::OFF);
    assert_eq!(rule(Rule::Cycle, "build"), RulePolicy::stop(5));
    assert_eq!(rule(Rule::SameCall, "build").act, Act::Off);
    assert_eq!(good("guard: {tools: {x: {unlimited: true}}}").guard.policy.tools["x"], ToolPolicy::free());
    assert_eq!(good("guard: {tools: {}}").guard.policy, GuardPolicy::default());
}

#[test]
fn complaints_of_the_guards_policy_name_keys() {
    for (text, key, other) in [
        (
            "guard: {similar_errors: {limit: 9}}", "guard.similar_errors.limit",
            "`guard.max_after_changes`, which is 8",
        ),
        ("guard: {max_after_changes: 2}", "guard.max_after_changes", "`guard.similar_errors.limit` is 6"),
        ("guard: {same_call: {limit: 13}}", "guard.same_call.limit", "`guard.max_waiting`, which is 12"),
        (
            "guard: {alternating_errors: {limit: 21}}", "guard.alternating_errors.limit",
            "`guard.window`, which is 20",
        ),
    ] {
        let (_, path, said) = only(text);
        assert!(path == key && said.contains(other), "{path}: {said}");
    }
    assert_eq!(bad("guard: {max_after_changes: 2, max_waiting: 3, window: 2}").count(), 3);
}

#[test]
fn repair_takes_words_too() {
    for (word, repair) in [("on", true), ("off", false), ("true", true), ("false", false)] {
        assert_eq!(good(&format!("tool_calls: {{repair: {word}}}")).args.repair, repair, "{word}");
    }
    assert!(only("tool_calls: {repair: yes}").2.contains("write `true`"));
}

#[test]
fn the_chains_of_the_seed_are_good() {
    let cloud = |name: &str| {
        let value = match name {
            "GOOGLE_CLOUD_PROJECT" => "my-project-1",
            "AZURE_OPENAI_ENDPOINT" => "https://my-resource.openai.azure.com",
            _ => "key.json",
        };
        Some(value.to_owned())
    };
    let mira = load("mira-cloud.yaml", include_str!("../../../examples/mira-cloud.yaml"), &cloud).unwrap();
    assert_eq!(mira.routes["mira"].chain, ["vertex/gemini-2.5-flash", "azure/gpt-4o", "openai/gpt-4o"]);
    let kinds: Vec<_> = mira.providers.values().map(|one| one.kind).collect();
    assert_eq!(kinds, [ProviderKind::Azure, ProviderKind::Openai, ProviderKind::Vertex]);

    let mira = good(include_str!("../../../examples/mira.yaml"));
    assert_eq!(mira.routes["mira"].chain, ["gemini/gemini-2.5-flash", "openai/gpt-4o"]);
    assert_eq!(mira.providers["gemini"].kind, ProviderKind::Gemini);
    assert_eq!((mira.code_prefix.as_str(), mira.degrade.answers_file.is_some()), ("MIRA", true));
    assert_eq!(mira.breaker, koboshi::breaker::BreakerPolicy::WINDOW);
    assert_eq!(mira.remedy.backoff, koboshi::backoff::BackoffPolicy::SERVICE);
}

// ===== What is held against each other =====

#[test]
fn a_chain_names_providers_that_are_there() {
    let (place, path, said) =
        only("providers: {openai: {kind: openai}}\nroutes:\n  gpt-4.1: [sim/ok, 'opnai/{model}']\n");
    assert_eq!((place, path.as_str()), ((3, 21), "routes.gpt-4.1.chain"));
    assert!(
        said.contains("`opnai`, which is not in `providers`") && said.contains("did you mean `openai`?"),
        "{said}"
    );
    let (_, path, said) =
        only("providers: {a: {kind: openai}}\nroutes: {x: {chain: [a/b], simple_model: gemini/x}}");
    assert!(path == "routes.x.simple_model" && said.contains("there are a, sim"), "{said}");
    assert_eq!(
        only("providers: {a: {kind: openai}}\ndegrade: {simple_model: openai/x}").1,
        "degrade.simple_model"
    );
    // Without providers, the environment has the well-known ones.
    for name in koboshi_config::well_known::names() {
        good(&format!("routes: {{x: ['{name}/{{model}}', sim/ok]}}"));
    }
    let said = only("routes: {x: [mira/m]}").2;
    assert!(
        said.contains("none of the well-known ones") && said.contains("others must be in `providers`"),
        "{said}"
    );
    assert!(only("routes: {x: [gemni/m]}").2.contains("did you mean `gemini`?"));
}

#[test]
fn models_are_of_providers_that_are_there_or_well_known() {
    good("providers: {a: {kind: openai}}\nmodels: {a/x: {}, '*/x': {}, openai/gpt-4o: {}, sim/*: {}}");
    let (_, path, said) = only("models:\n  opnai/gpt-4o: {tools: true}\n");
    assert!(path == "models.opnai/gpt-4o" && said.contains("did you mean `openai`?"), "{said}");
    assert!(only("models: {gpt-4o: {}}").2.contains("write `*/` before it"));
}

#[test]
fn a_public_gateway_needs_keys() {
    for address in ["0.0.0.0:4141", "'[::]:4141'", "192.168.0.1:1"] {
        let (place, path, said) = only(&format!("serve:\n  listen: {address}\n"));
        assert_eq!((place, path.as_str()), ((2, 11), "serve.listen"));
        assert!(said.contains("does not start") && said.contains("`keys`"), "{said}");
        good(&format!("serve: {{listen: {address}}}\nkeys: {{a: {{sha256: {HASH}}}}}"));
    }
    for address in ["127.9.9.9:1", "'[::1]:1'", "'[::ffff:127.0.0.1]:1'"] {
        good(&format!("serve: {{listen: {address}}}"));
    }
    assert_eq!(
        bad("serve: {listen: 0.0.0.0:1}\nkeys: {a: {sha256: x}}").count(),
        1,
        "the hash is what is wrong"
    );
    // The name is no text and its hash is missing; the address is not blamed besides.
    assert_eq!(bad("serve: {listen: 0.0.0.0:1}\nkeys: {1: {}}").count(), 2);
}

#[test]
fn one_key_has_one_name() {
    let big = HASH.to_uppercase();
    let (place, path, said) = only(&format!("keys:\n  b: {{sha256: {HASH}}}\n  a: {{sha256: {big}}}\n"));
    assert_eq!((place, path.as_str()), ((3, 15), "keys.a.sha256"));
    assert!(said.contains("the same key as `keys.b.sha256` in line 2") && !said.contains(HASH), "{said}");
    assert_eq!(
        only(&format!("keys: {{a: {{sha256: {HASH}}}}}\nadmin: {{sha256: {HASH}}}")).1,
        "admin.sha256"
    );
}

#[test]
fn an_entry_has_what_it_must_have() {
    let (place, path, said) = only("providers:\n  a: {}\n");
    assert_eq!((place, path.as_str()), ((2, 3), "providers.a"));
    assert!(said.contains("has no `kind`") && said.contains("`deepseek`"), "{said}");
    assert!(only("routes:\n  m: {commit: first}\n").2.contains("has no `chain`"));
    assert!(only("routes:\n  m:\n").2.contains("has no `chain`"));
    assert!(only("keys: {a: {tenant: x}}").2.contains("has no `sha256`"));
    // What only follows from another mistake is not said.
    assert!(only("providers: {a: {knd: openai}}").2.contains("did you mean `kind`?"));
    assert!(only("providers: {a: {kind: opnai}}").2.contains("did you mean `openai`?"));
    assert!(only("providers: {a: [openai]}").2.contains("must hold keys"));
    assert!(only("providers: {a: openai}\nroutes: {m: [a/x]}").2.contains("must hold keys"));
    assert_eq!(
        bad("providers: {a: openai}\nroutes: {m: [b/x]}").count(),
        2,
        "but this is a mistake of its own"
    );
}

#[test]
fn names_are_checked() {
    assert!(only("providers: {OpenAI: {kind: openai}}").2.contains("write it in small letters"));
    assert!(only("routes: {4: [sim/ok]}").2.contains("put it in quotes"));
    assert!(only("routes: {'a\\tb': [sim/ok]}\n".replace("'", "\"").as_str()).2.contains("printable"));
    let many: String = (0..1500).map(|n| format!("  m{n}: [sim/ok]\n")).collect();
    let (place, _, said) = only(&format!("routes:\n{many}"));
    assert!(place.0 == 1002 && said.contains("more than 1000 entries"), "{said}");
    assert!(only("routes: {m: [sim/ok], m: [sim/ok]}").2.contains("`routes.m` is set twice"));
}

#[test]
fn the_built_in_provider_keeps_its_name() {
    assert!(only("providers: {sim: {kind: openai}}").2.contains("built-in"));
    good("providers: {sim: {kind: sim}, other: {kind: sim}}\nroutes: {x: [sim/ok, other/ok]}");
    assert_eq!(only("providers: {s: {kind: sim, keys: [hunter2]}}").1, "providers.s.keys");
    assert_eq!(only("providers: {s: {kind: sim, base_url: 'http://h'}}").1, "providers.s.base_url");
}

#[test]
fn a_provider_of_every_kind_is_read() {
    let config = good(
        r#"
providers:
  o: {kind: openai, dialects: [responses, chat], token_command: [token, --for, "llm here"]}
  a: {kind: azure, base_url: "https://h.openai.azure.com", api_version: 2024-10-21, keys: ["${KEY}"]}
  c: {kind: anthropic, keys: ["${KEY}"]}
  g: {kind: gemini, keys: ["${KEY}"]}
  v: {kind: vertex, credentials_file: account.json, location: europe-west1}
  w: {kind: vertex, project: p-1, token_command: [token]}
  l: {kind: ollama}
  d: {kind: deepseek}
  s: {kind: sim, dialects: [messages]}
"#,
    );
    let one = |name: &str| &config.providers[name];
    assert_eq!(one("o").dialects, [ProviderDialect::Responses, ProviderDialect::Chat], "in their order");
    assert_eq!(one("o").token_command, ["token", "--for", "llm here"]);
    assert_eq!(one("a").api_version.as_deref(), Some("2024-10-21"));
    assert_eq!(one("v").credentials_file.as_deref(), Some(std::path::Path::new("/etc/account.json")));
    assert_eq!((one("v").location.as_deref(), one("v").project.as_deref()), (Some("europe-west1"), None));
    assert_eq!(one("w").project.as_deref(), Some("p-1"));
    let kinds: Vec<_> = config.providers.values().map(|one| one.kind).collect();
    assert!(ProviderKind::ALL.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}

#[test]
fn missing_keys_of_a_kind_are_named() {
    let said = |text: &str| only(&format!("providers:\n  a: {{{text}}}\n"));
    let (place, path, message) = said("kind: azure, keys: [hunter2]");
    assert_eq!((place, path.as_str()), ((2, 13), "providers.a.kind"));
    assert!(message.contains("has no `base_url`") && message.contains("openai.azure.com"), "{message}");
    assert!(said("kind: vertex, project: p").2.contains("no `credentials_file` and no `token_command`"));
    assert!(said("kind: vertex, token_command: [t]").2.contains("has no `project`"));
    // What only follows from another mistake is not said.
    assert!(said("kind: azure, base_url: h").2.contains("begin with `https://`"));
    assert!(said("kind: vertex, project: 'a b', token_command: [t]").2.contains("the id of a project"));
    assert!(said("kind: azur").2.contains("did you mean `azure`?"));
}

#[test]
fn keys_that_a_kind_does_not_read_are_named() {
    for (kind, more, key) in [
        ("openai", "", "api_version: '1'"),
        ("gemini", "", "project: p"),
        ("gemini", "", "location: eu"),
        ("anthropic", "", "credentials_file: f"),
        ("vertex", "project: p, token_command: [t], ", "keys: [hunter2]"),
        ("sim", "", "token_command: [t]"),
    ] {
        let (_, path, said) = only(&format!("providers: {{a: {{kind: {kind}, {more}{key}}}}}"));
        let name = key.split(':').next().unwrap();
        assert_eq!(path, format!("providers.a.{name}"));
        assert!(said.contains(&format!("is not read for the kind `{kind}`")), "{said}");
    }
}

#[test]
fn a_provider_has_one_credential() {
    let (place, path, said) =
        only("providers:\n  a: {kind: openai, keys: ['${KEY}'],\n    token_command: [t]}\n");
    assert_eq!((place, path.as_str()), ((3, 20), "providers.a.token_command"));
    assert!(said.contains("`providers.a.keys` in line 2") && said.contains("keep one"), "{said}");
    let text = "providers: {a: {kind: vertex, token_command: [t], credentials_file: f}}";
    assert_eq!(only(text).1, "providers.a.credentials_file", "a project may come with the file");
    good("providers: {a: {kind: openai, keys: [], token_command: [t]}}");
}

#[test]
fn dialects_are_those_that_can_be_spoken() {
    let said = |text: &str| only(&format!("providers:\n  a: {{{text}}}\n"));
    let (place, path, message) = said("kind: openai, dialects: [chat, chat]");
    assert_eq!((place, path.as_str()), ((2, 38), "providers.a.dialects"));
    assert!(message.contains("`chat` twice"), "{message}");
    let message = said("kind: azure, base_url: 'http://h', dialects: [messages]").2;
    assert!(message.contains("does not have `messages`") && message.contains("`responses`"), "{message}");
    assert!(said("kind: openai, dialects: [anthropic]").2.contains("write `messages`"));
    assert!(said("kind: openai, dialects: chat").2.contains("write `[\"chat\"]`"));
    assert!(said("kind: openai, dialects: []").2.contains("1 to 4"));
    good("providers: {a: {kind: ollama, dialects: [chat, responses, messages]}}");
}

#[test]
fn the_excess_of_an_address_is_named() {
    let said = |url: &str| only(&format!("providers: {{a: {{kind: openai, base_url: '{url}'}}}}")).2;
    assert!(said("https://h/v1/chat/completions").contains("`/chat/completions` is added"));
    assert!(said("https://h/v1/responses/").contains("`/responses` is added"));
    for (kind, url) in [("azure", "https://h/openai/v1"), ("gemini", "https://h/v1beta/models")] {
        let text = format!("providers: {{a: {{kind: {kind}, base_url: '{url}'}}}}");
        assert!(only(&text).2.contains("goes too far"), "{text}");
    }
    assert!(said("https://user:hunter2@h/v1").contains("before the `@`"));
    assert!(said("https://h/v1?api-version=1").contains("leave out the `?`"));
    assert!(said("api.example/v1").contains("begin with `https://`"));
    assert!(only("serve: {listen: localhost:4141}").2.contains("write `127.0.0.1`"));
    assert!(only("serve: {listen: 4141}").2.contains("write the address too"));
    assert!(only("serve: {allowed_origins: ['*']}").2.contains("name each page"));
}

// ===== Secrets =====

#[test]
fn secrets_of_entries_are_never_shown_whatever_is_wrong() {
    for text in [
        "providers: {a: {kind: openai, keys: hunter2}}",
        "providers: {a: {kind: openai, keys: {hunter2: 1}}}",
        "providers: {a: {kind: openai, keys: [hunter2, 5]}}",
        "providers: {a: {kind: opnai, keys: [hunter2]}}",
        "providers: {a: {keys: [hunter2, '${NONE}']}}",
        "providers: {a: {api_key: hunter2, kind: openai}}",
        "providers: {a: {kind: openai, keys: [hunter2], base_url: x}}",
        "providers:\n  a:\n    keys:\n      - hunter2\n     - hunter2b\n",
        "providers: {a: {keys: [hunter2",
        "providers: {a: {kind: openai, keys: ['hunter2 ']}}",
        "keys: {a: {sha256: hunter2}}",
        "keys: {a: {key: hunter2}}",
        "admin: {key: hunter2}",
        "admin: {sha256: hunter2, x: 1}",
        "providers: {a: {kind: openai, keys: ['${KEY}', \"a\n  hunter2\", 5]}}",
        "providers: {a: {kind: openai, keys: [&x hunter2, *x, 5]}}",
        "# 日本語\nkeys: {日本語: {sha256: 'hunter2', x: 1}}",
        "providers: {a: {keys: [\"a\n  hunter2\"], kind: x}}",
        "providers: {a: {kind: openai, keys: [\"hunter2\"], \"日本\": hunter2}}",
        "keys: {日本語: {sha256: hunter2, x: hunter2}, a: {tenant: ' x'}}",
    ] {
        bad(text);
    }
    let said =
        bad("providers:\n  a:\n    kind: openai\n    keys:\n      - ${KEY}\n      - ${NONE}\n").to_string();
    assert!(said.contains("6 |       - ${NONE}"), "the name of a variable is no secret: {said}");
    assert!(only("providers: {a: {kind: openai, keys: '${KEY}'}}").2.contains("write `[\"${KEY}\"]`"));
}

#[test]
fn texts_with_braces_need_quotes_in_brackets() {
    for text in [
        "routes: {m: [openai/{model}]}", "routes:\n  m: [openai/{model}]\n",
        "providers: {a: {keys: [${KEY}]}}",
    ] {
        assert!(only(text).2.contains("[\"openai/{model}\""), "{text}");
    }
    assert_eq!(good("routes:\n  m:\n    - openai/{model}\n").routes["m"].chain, ["openai/{model}"]);
    assert!(only("routes: {m: openai/gpt-4o}").2.contains("write `[\"openai/gpt-4o\"]`"));
    assert!(only("routes: {m: ['{model}/x']}").2.contains("only behind the `/`"));
}
