//! How long the built-in facts of models take to read, and a model to be looked up in them.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use koboshi::models::Models;

fn read(c: &mut Criterion) {
    c.bench_function("models/read", |b| b.iter(|| black_box(Models::builtin())));
}

fn look_up(c: &mut Criterion) {
    let Ok(models) = Models::builtin() else { return };
    for name in ["gpt-5.1-codex", "us.anthropic.claude-sonnet-4-20250514-v1:0", "never-heard-of"] {
        c.bench_function(&format!("models/facts/{name}"), |b| {
            b.iter(|| black_box(models.facts("openai", black_box(name))));
        });
    }
}

criterion_group!(benches, read, look_up);
criterion_main!(benches);
