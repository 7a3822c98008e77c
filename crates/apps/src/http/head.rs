//! HTTP/1.1 heads: requests and responses up to their empty line, read from bytes that anyone may have sent (RFC 9112).

use thiserror::Error;

/// The longest head that is read, in bytes.
pub const MOST_HEAD: usize = 8192;

/// Why a head was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeadError {
    /// It has no end within [`MOST_HEAD`] bytes.
    #[error("the message's head is longer than {MOST_HEAD} bytes")]
    TooLarge,
    /// It breaks the grammar.
    #[error("the message's head is malformed: {0}")]
    Malformed(&'static str),
}

/// The fields that decide how a message ends and what becomes of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    hosts: u32,
    close: bool,
    keep_alive: bool,
    content_length: Option<u64>,
    /// The last transfer coding is `chunked`.
    chunked: bool,
    coded: bool,
}

/// A request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The method, such as `GET`.
    pub method: String,
    /// The path, with query, without scheme and authority.
    pub path: String,
    /// `true` if the connection may serve another request.
    pub keep_alive: bool,
    /// HTTP/1.0, which needs to be told that a connection is kept.
    pub old: bool,
    /// `true` if a body follows.
    pub has_body: bool,
}

/// The way the body of a response ends (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    Close,
}

/// A response's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// The way the body ends; the request was not `HEAD`.
    pub body: BodyEnd,
    /// `true` if the connection may serve another request.
    pub keep_alive: bool,
}

/// Reads a request's head from the first bytes of `bytes`, and tells how many it took; `None` while its end has not
/// come.
///
/// # Errors
/// As [`HeadError`] tells.
pub fn parse_request(bytes: &[u8]) -> Result<Option<(RequestHead, usize)>, HeadError> {
    // "a server that is expecting to receive and parse a request-line SHOULD ignore at least one empty line (CRLF)"
    // (RFC 9112, 2.2)
    let skipped = bytes.iter().take_while(|&&byte| byte == b'\r' || byte == b'\n').count();
    let Some((lines, length)) = split_head(bytes, skipped)? else { return Ok(None) };
    let (line, fields) = parse_lines(&lines)?;
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(HeadError::Malformed("the request line is not method, target, version"));
    };
    if !is_token(method) {
        return Err(HeadError::Malformed("the method is not a token"));
    }
    let old = is_old(version)?;
    // "A server MUST respond with a 400 status code to any HTTP/1.1 request message that lacks a Host header field
    // and to any request message that contains more than one Host header field line" (RFC 9112, 3.2)
    if fields.hosts > 1 || (fields.hosts == 0 && !old) {
        return Err(HeadError::Malformed("there is not exactly one Host field"));
    }
    let has_body = fields.coded || fields.content_length.is_some_and(|length| length > 0);
    let (method, path) = (method.to_owned(), path_of(target)?.to_owned());
    let keep_alive = fields.keeps(old);
    Ok(Some((RequestHead { method, path, keep_alive, old, has_body }, length)))
}

/// Reads a response's head as [`parse_request`] does a request's.
///
/// # Errors
/// As [`HeadError`] tells.
pub fn parse_response(bytes: &[u8]) -> Result<Option<(ResponseHead, usize)>, HeadError> {
    let Some((lines, length)) = split_head(bytes, 0)? else { return Ok(None) };
    let (line, fields) = parse_lines(&lines)?;
    let mut words = line.splitn(3, ' ');
    let old = is_old(words.next().unwrap_or(""))?;
    let code = words.next().unwrap_or("");
    let digits = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    let status = code.parse().ok().filter(|status| digits && *status >= 100);
    let status = status.ok_or(HeadError::Malformed("the status is not a three-digit number"))?;
    let body = match fields {
        _ if status < 200 || status == 204 || status == 304 => BodyEnd::Length(0),
        Fields { chunked: true, .. } => BodyEnd::Chunked,
        Fields { coded: true, .. } => BodyEnd::Close,
        Fields { content_length: Some(length), .. } => BodyEnd::Length(length),
        _ => BodyEnd::Close,
    };
    let keep_alive = fields.keeps(old) && body != BodyEnd::Close;
    Ok(Some((ResponseHead { status, body, keep_alive }, length)))
}

impl Fields {
    const fn keeps(&self, old: bool) -> bool {
        !self.close && (!old || self.keep_alive)
    }

    fn enter(&mut self, name: &str, value: &str) -> Result<(), HeadError> {
        let tokens = || value.split(',').map(str::trim);
        match name.to_ascii_lowercase().as_str() {
            "host" => self.hosts += 1,
            "connection" => {
                self.close |= tokens().any(|token| token.eq_ignore_ascii_case("close"));
                self.keep_alive |= tokens().any(|token| token.eq_ignore_ascii_case("keep-alive"));
            }
            "transfer-encoding" => {
                self.coded = true;
                self.chunked = tokens().next_back().is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
            }
            "content-length" => {
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let length = value.parse().ok().filter(|_| digits);
                let length = length.ok_or(HeadError::Malformed("the Content-Length is not a number"))?;
                if self.content_length.replace(length).is_some_and(|before| before != length) {
                    return Err(HeadError::Malformed("there are two different Content-Lengths"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The lines of a head, and the bytes up to its end.
type Lines<'a> = (Vec<&'a [u8]>, usize);

/// The lines from `skipped` on up to the first empty one, and the bytes up to its end. A lone LF ends a line too
/// (RFC 9112, 2.2).
fn split_head(bytes: &[u8], skipped: usize) -> Result<Option<Lines<'_>>, HeadError> {
    let readable = &bytes[..bytes.len().min(MOST_HEAD)];
    let mut lines = Vec::new();
    let mut start = skipped.min(readable.len());
    while let Some(length) = readable[start..].iter().position(|&byte| byte == b'\n') {
        let line = &readable[start..start + length];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        start += length + 1;
        if line.is_empty() {
            return Ok(Some((lines, start)));
        }
        lines.push(line);
    }
    if bytes.len() >= MOST_HEAD {
        return Err(HeadError::TooLarge);
    }
    Ok(None)
}

/// The first line, and what the fields say.
fn parse_lines<'a>(lines: &[&'a [u8]]) -> Result<(&'a str, Fields), HeadError> {
    let Some((first, rest)) = lines.split_first() else {
        return Err(HeadError::Malformed("there is no first line"));
    };
    let text = |line: &'a [u8]| {
        let visible = line.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f));
        // Bytes above ASCII are opaque in field values (RFC 9110, 5.5); nothing that is looked at holds any.
        if visible {
            Ok(line)
        } else {
            Err(HeadError::Malformed("there is a control character"))
        }
    };
    let first = std::str::from_utf8(text(first)?).map_err(|_| HeadError::Malformed("the first line is not ASCII"))?;
    let mut fields = Fields::default();
    for line in rest {
        let line = text(line)?;
        let colon = line.iter().position(|&byte| byte == b':');
        let colon = colon.ok_or(HeadError::Malformed("a field has no colon"))?;
        let name = std::str::from_utf8(&line[..colon]).unwrap_or("");
        // This refuses space before the colon (RFC 9112, 5.1) and folded lines (5.2) as well.
        if !is_token(name) {
            return Err(HeadError::Malformed("a field's name is not a token"));
        }
        if let Ok(value) = std::str::from_utf8(&line[colon + 1..]) {
            fields.enter(name, value.trim_matches([' ', '\t']))?;
        }
    }
    Ok((first, fields))
}

/// Returns whether the version is 1.0.
fn is_old(version: &str) -> Result<bool, HeadError> {
    match version.strip_prefix("HTTP/1.").map(str::as_bytes) {
        Some([minor]) if minor.is_ascii_digit() => Ok(*minor == b'0'),
        _ => Err(HeadError::Malformed("the version is not HTTP/1")),
    }
}

/// A token of RFC 9110, 5.6.2.
fn is_token(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The path of a target. "a server MUST accept the absolute-form in requests" (RFC 9112, 3.2.2)
fn path_of(target: &str) -> Result<&str, HeadError> {
    if target.starts_with('/') || target == "*" {
        return Ok(target);
    }
    match target.strip_prefix("http://").or_else(|| target.strip_prefix("https://")) {
        Some(rest) => Ok(rest.find('/').map_or("/", |slash| &rest[slash..])),
        None => Err(HeadError::Malformed("the target is no path")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_of_known_clients_are_read() {
        let wget = b"GET /bytes/5 HTTP/1.1\r\nHost: 10.0.0.4:8080\r\nUser-Agent: Wget/1.21.3\r\nAccept: \
            */*\r\nAccept-Encoding: identity\r\nConnection: Keep-Alive\r\n\r\nrest";
        let (head, length) = parse_request(wget).unwrap().unwrap();
        assert_eq!(
            (head.method.as_str(), head.path.as_str(), head.keep_alive, head.old),
            ("GET", "/bytes/5", true, false)
        );
        assert_eq!(&wget[length..], b"rest");
        let ab = b"GET /bytes/5 HTTP/1.0\r\nHost: h4\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n";
        let (head, _) = parse_request(ab).unwrap().unwrap();
        assert_eq!((head.keep_alive, head.old), (false, true));
        let absolute = b"\r\nGET http://h4:8080/bytes/5?x HTTP/1.1\nhost: h4\nconnection: TE, close\n\n";
        let (head, length) = parse_request(absolute).unwrap().unwrap();
        assert_eq!((head.path.as_str(), head.keep_alive, length), ("/bytes/5?x", false, absolute.len()));
    }

    #[test]
    fn what_breaks_the_grammar_is_refused() {
        for text in [
            "GET /\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\u{0}\r\n\r\n",
            "GET bytes HTTP/1.1\r\nHost: a\r\n\r\n",
            "G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            assert!(matches!(parse_request(text.as_bytes()), Err(HeadError::Malformed(_))), "{text:?}");
        }
    }

    #[test]
    fn a_head_without_end_is_waited_for_and_then_too_large() {
        let mut bytes = b"GET / HTTP/1.1\r\nX: ".to_vec();
        bytes.resize(MOST_HEAD - 1, b'a');
        assert_eq!(parse_request(&bytes), Ok(None));
        bytes.push(b'a');
        assert_eq!(parse_request(&bytes), Err(HeadError::TooLarge));
        assert_eq!(parse_request(&vec![b'\n'; MOST_HEAD]), Err(HeadError::TooLarge));
    }

    #[test]
    fn the_end_of_a_response_is_told_by_its_fields() {
        let end = |text: &str| {
            let head = parse_response(text.as_bytes()).unwrap().unwrap().0;
            (head.status, head.body, head.keep_alive)
        };
        assert_eq!(end("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"), (200, BodyEnd::Length(7), true));
        assert_eq!(end("HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n"), (200, BodyEnd::Length(7), false));
        assert_eq!(
            end("HTTP/1.1 200\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 7\r\n\r\n"),
            (200, BodyEnd::Chunked, true)
        );
        assert_eq!(end("HTTP/1.1 200 OK\r\n\r\n"), (200, BodyEnd::Close, false));
        assert_eq!(end("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"), (304, BodyEnd::Length(0), true));
        assert_eq!(
            end("HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            (503, BodyEnd::Length(0), false)
        );
        assert!(parse_response(b"HTTP/1.1 20 OK\r\n\r\n").is_err());
        assert!(parse_response(b"ICY 200 OK\r\n\r\n").is_err());
    }

    fn spelled() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            "GET ",
            "/bytes/1 ",
            "HTTP/1.1",
            "\r\n",
            "\n",
            "Host: a",
            "Content-Length: ",
            "5",
            ":",
            " ",
            "\r",
            "Transfer-Encoding: chunked",
            "HTTP/1.0 200 OK",
            "Connection: close",
            "\u{fc}",
            "\t",
        ]);
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_waited_for_or_refused(bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..400),
            spelled()]) {
            if let Ok(Some((_, length))) = parse_request(&bytes) {
                prop_assert!(length <= bytes.len());
            }
            if let Ok(Some((_, length))) = parse_response(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }

        #[test]
        fn a_head_reads_alike_however_much_of_it_came_before(bytes in spelled()) {
            // What was read or refused for good stays so when more comes; what was waited for ends in what the
            // whole gives.
            let whole = parse_request(&bytes);
            for length in 0..bytes.len() {
                match parse_request(&bytes[..length]) {
                    Ok(None) => {}
                    settled => prop_assert_eq!(&settled, &whole),
                }
            }
        }
    }
}
