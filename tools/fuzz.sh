#!/bin/sh
# Fuzzes every target of crates/*/fuzz for SECONDS (60), from the corpus that earlier runs have left in CORPUS
# (target/fuzz-corpus), and keeps what it finds there. The stable compiler suffices: the flags are those of cargo-fuzz
# without a sanitizer. Where libFuzzer cannot be had, the same code gets random bytes instead. With SANITIZER=address
# (or another that the compiler knows) the targets are watched by it, too. Exit status 1: a target failed, does not
# compile, or took 10 s for an input. A sixth of the time goes to inputs of up to 256 KiB, of which a loop in a loop makes
# a minute.
seconds=${1:-60}
root=${FUZZ_ROOT:-$(cd "$(dirname "$0")/.." && pwd)}
corpus=${2:-$root/target/fuzz-corpus}
coverage="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks"
if [ -n "${SANITIZER:-}" ]; then
    # Sanitizers are not stable; the stable compiler has them all the same.
    export RUSTC_BOOTSTRAP=1
    coverage="$coverage -Zsanitizer=$SANITIZER"
fi
# Named, so that the flags are for the targets and not for build scripts.
machine=$(rustc -vV | sed -n 's/^host: //p')
failed=0
log=$root/target/fuzz-build.log
mkdir -p "$corpus"

# build MANIFEST ARGUMENTS...: a part of what a target needs, its messages in the log.
build() {
    manifest=$1
    shift
    RUSTFLAGS="$(echo $coverage)" CARGO_TARGET_DIR="$root/target/fuzz" \
        cargo build --quiet --release --target "$machine" --manifest-path "$manifest" "$@" 2>"$log"
}

# fuzz OPTIONS...: the target `name` from the corpus in `kept`.
fuzz() {
    "$root/target/fuzz/$machine/release/$name" "$kept" "$@" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$kept/failed-" -print_final_stats=1 >"$kept.log" 2>&1 || {
        failed=1
        tail -n 30 "$kept.log" >&2
    }
}

# told WHAT: a figure of the last `fuzz`.
told() {
    sed -n "s/^stat::$1: *//p" "$kept.log"
}

for manifest in "$root"/crates/*/fuzz/Cargo.toml; do
    crate=$(basename "$(dirname "$(dirname "$manifest")")")
    build "$manifest" -p libfuzzer-sys
    has_fuzzer=$?
    for source in "$(dirname "$manifest")"/fuzz_targets/*.rs; do
        name=$(basename "$source" .rs)
        kept=$corpus/$crate-$name
        mkdir -p "$kept"
        if [ "$has_fuzzer" -ne 0 ]; then
            echo "$crate/$name: libFuzzer cannot be built here ($(tail -n 1 "$log")); random bytes instead"
            PROPTEST_CASES=$((seconds * 500)) cargo test --quiet -p "twinnet-$crate" --test any_bytes || failed=1
        elif ! build "$manifest" --bin "$name"; then
            failed=1
            echo "$crate/$name: does not compile" >&2
            tail -n 30 "$log" >&2
        else
            before=$(find "$kept" -type f | wc -l)
            fuzz -max_total_time="$seconds"
            runs=$(told number_of_executed_units)
            fuzz -max_total_time="$((seconds / 6 + 1))" -len_control=0 -max_len=262144
            echo "$crate/$name: $runs runs and $(told number_of_executed_units) of large inputs, of which the slowest" \
                "took $(told slowest_unit_time_sec) s; $before inputs before, $(find "$kept" -type f | wc -l) now"
        fi
    done
done
exit "$failed"
