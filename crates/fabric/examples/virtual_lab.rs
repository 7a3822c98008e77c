//! A lab on the virtual clock by standard input and output: the first line describes the network, each further one is a request
//! (docs/reference/lab-protocol.md), each answer is a line. For profiling, and for programs in other languages.

use std::io::{BufRead, Write};
use std::time::Instant;

use serde_json::{json, Value};
use twinnet_fabric::lab::network::NetworkSpec;
use twinnet_fabric::lab::VirtualLab;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = std::io::stdin().lock().lines();
    let described: Value = serde_json::from_str(&lines.next().ok_or("the first line describes a network")??)?;
    let open = |path: &str| Ok(Box::new(std::fs::File::create(path)?) as Box<dyn Write + Send>);
    let mut lab = VirtualLab::new(NetworkSpec::from_json(&described)?, Box::new(open))?;
    let mut out = std::io::stdout().lock();
    for line in lines {
        let begin = Instant::now();
        let answer = match lab.request(&serde_json::from_str(&line?)?, &mut || false) {
            Ok(value) => json!({"ok": value, "took_s": begin.elapsed().as_secs_f64()}),
            Err(error) => json!({"error": error}),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
