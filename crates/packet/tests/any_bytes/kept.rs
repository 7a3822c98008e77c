//! The inputs that fuzzing has kept (`tools/keep_fuzz_inputs.py`): the few that together reach most of what it reached.

/// Returns the inputs of `text`, which has one a line, in hexadecimal digits.
pub fn inputs(text: &str) -> Vec<Vec<u8>> {
    let digits = |line: &str| {
        let byte = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).expect("hexadecimal digits");
        (0..line.len()).step_by(2).map(byte).collect::<Vec<u8>>()
    };
    let inputs: Vec<_> = text.lines().map(digits).collect();
    assert!(inputs.len() > 10, "{} inputs were kept", inputs.len());
    inputs
}
