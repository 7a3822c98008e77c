//! Cutting a flow's text into words, and the error that points at one of them.

use thiserror::Error;

/// Why a text is no flow. Points at the word and says what is allowed and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("column {column}: {token:?} {problem}; {remedy}")]
pub struct FlowSyntaxError {
    /// The word that is wrong, shortened; empty where a word is missing.
    pub token: String,
    /// The column at which it begins in the text, counted from 1 in characters.
    pub column: usize,
    /// The problem with it.
    pub problem: String,
    /// The values that are allowed, or what to write instead.
    pub remedy: String,
}

/// A part of a text, and where it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// Characters before it, plus 1.
    pub(super) column: usize,
}

impl<'a> Word<'a> {
    /// The whole of a text.
    pub(super) fn whole(text: &'a str) -> Self {
        Self { text, column: 1 }
    }

    /// The part from byte `from` to byte `to`.
    fn part(self, from: usize, to: usize) -> Self {
        Self { text: &self.text[from..to], column: self.column + self.text[..from].chars().count() }
    }

    /// Without blanks around it.
    pub(super) fn trimmed(self) -> Self {
        let start = self.text.len() - self.text.trim_start().len();
        self.part(start, start + self.text.trim().len())
    }

    /// The parts before and after the first `separator`.
    pub(super) fn split_once(self, separator: &str) -> Option<(Self, Self)> {
        let at = self.text.find(separator)?;
        Some((self.part(0, at), self.part(at + separator.len(), self.text.len())))
    }

    /// The error that this word is wrong.
    pub(super) fn error(self, problem: impl Into<String>, remedy: impl Into<String>) -> FlowSyntaxError {
        FlowSyntaxError {
            token: self.text.chars().take(60).collect(),
            column: self.column,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

/// A name, and what stands after its `=` or `:` or in its parentheses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) name: Word<'a>,
    pub(super) value: Option<Word<'a>>,
}

/// Takes items off the front of a text.
pub(super) struct Items<'a> {
    rest: Word<'a>,
    /// The characters that separate a name from its value, beside a parenthesis.
    joints: &'static [char],
    /// Names whose value is all the rest of the text.
    last: &'static [&'static str],
}

fn separates(character: char) -> bool {
    character == ',' || character.is_whitespace()
}

impl<'a> Items<'a> {
    /// Conditions and properties: `name=value`, up to `actions=`, whose value is all the rest.
    pub(super) fn of_flow(text: Word<'a>) -> Self {
        Self { rest: text, joints: &['='], last: &["actions", "action"] }
    }

    /// Actions: `name:value`, `name=value` or `name(values)`.
    pub(super) fn of_actions(text: Word<'a>) -> Self {
        Self { rest: text, joints: &[':', '='], last: &[] }
    }

    /// Cuts `length` bytes off the front.
    fn take(&mut self, length: usize) -> Word<'a> {
        let taken = self.rest.part(0, length);
        self.rest = self.rest.part(length, self.rest.text.len());
        taken
    }

    /// The next item, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Item<'a>>, FlowSyntaxError> {
        let text = self.rest.text;
        self.take(text.len() - text.trim_start_matches(separates).len());
        let text = self.rest.text;
        if text.is_empty() {
            return Ok(None);
        }
        let name_end = text.find(|c: char| separates(c) || c == '(' || self.joints.contains(&c)).unwrap_or(text.len());
        let name = self.take(name_end);
        let value = match self.rest.text.chars().next() {
            Some('(') => Some(self.in_parentheses(name)?),
            Some(joint) if self.joints.contains(&joint) => {
                self.take(1);
                let all = self.last.contains(&name.text);
                let end = if all { self.rest.text.len() } else { value_end(self.rest.text) };
                Some(self.take(end))
            }
            _ => None,
        };
        Ok(Some(Item { name, value }))
    }

    fn in_parentheses(&mut self, name: Word<'a>) -> Result<Word<'a>, FlowSyntaxError> {
        let mut depth = 0_usize;
        for (at, character) in self.rest.text.char_indices() {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let whole = self.take(at + 1);
                return Ok(whole.part(1, at));
            }
        }
        Err(name.error("has an opening parenthesis without its closing one", "add the \")\" that is missing"))
    }
}

/// Returns the place where a value ends: at the first separator that is not inside parentheses.
fn value_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && separates(character) => return at,
            _ => {}
        }
    }
    text.len()
}
