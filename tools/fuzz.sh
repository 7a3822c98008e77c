#!/bin/sh
# Fuzzes every target of crates/*/fuzz for SECONDS (60), from the corpus that earlier runs have left in CORPUS
# (target/fuzz-corpus), and keeps what it finds there. The stable compiler suffices: the flags are those of cargo-fuzz
# without a sanitizer. Where libFuzzer cannot be had, the same code gets random bytes instead. Exit status 1: a target failed.
seconds=${1:-60}
root=$(cd "$(dirname "$0")/.." && pwd)
corpus=${2:-$root/target/fuzz-corpus}
coverage="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks"
# Named, so that the flags are for the targets and not for build scripts.
machine=$(rustc -vV | sed -n 's/^host: //p')
failed=0
mkdir -p "$corpus"
for manifest in "$root"/crates/*/fuzz/Cargo.toml; do
    crate=$(basename "$(dirname "$(dirname "$manifest")")")
    for source in "$(dirname "$manifest")"/fuzz_targets/*.rs; do
        name=$(basename "$source" .rs)
        kept=$corpus/$crate-$name
        mkdir -p "$kept"
        # shellcheck disable=SC2086
        if RUSTFLAGS="$(echo $coverage)" CARGO_TARGET_DIR="$root/target/fuzz" \
            cargo build --quiet --release --target "$machine" --manifest-path "$manifest" --bin "$name" \
            2>"$root/target/fuzz-build.log"; then
            before=$(find "$kept" -type f | wc -l)
            "$root/target/fuzz/$machine/release/$name" "$kept" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
                -artifact_prefix="$kept/failed-" -print_final_stats=1 >"$kept.log" 2>&1 || {
                failed=1
                tail -n 30 "$kept.log" >&2
            }
            echo "$crate/$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$kept.log") runs," \
                "$before inputs before, $(find "$kept" -type f | wc -l) now"
        else
            echo "$crate/$name: libFuzzer cannot be built here ($(tail -n 1 "$root/target/fuzz-build.log")); random bytes instead"
            PROPTEST_CASES=$((seconds * 500)) cargo test --quiet -p "twinnet-$crate" --test any_bytes || failed=1
        fi
    done
done
exit "$failed"
