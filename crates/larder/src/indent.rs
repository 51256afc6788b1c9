//! JSON for people, made of JSON text without reading it into anything: a host may have a thousand tenants.

use memchr::memchr2;

/// What one level is indented by.
const LEVEL: &str = "  ";

/// A JSON text, a line to a value, as `serde_json` indents. What is no JSON is no JSON then either.
pub fn indented(json: &str) -> String {
    let mut text = String::with_capacity(2 * json.len());
    let (mut rest, mut depth) = (json, 0);
    while let Some(next) = rest.chars().next() {
        let (token, after) = rest.split_at(match next {
            '"' => string_length(rest),
            _ => next.len_utf8(),
        });
        rest = after.trim_ascii_start();
        let closes = rest.starts_with(['}', ']']);
        match next {
            '{' | '[' if closes => text.push_str(token),
            '{' | '[' => {
                depth += 1;
                text.push_str(token);
                begin_line(&mut text, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(usize::from(!text.ends_with(['{', '['])));
                text.push_str(token);
            }
            ',' => {
                text.push_str(token);
                begin_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => text.push_str(token),
        }
        if closes && !matches!(next, '{' | '[') {
            begin_line(&mut text, depth.saturating_sub(1));
        }
    }
    text
}

fn begin_line(text: &mut String, depth: usize) {
    text.push('\n');
    (0..depth).for_each(|_| text.push_str(LEVEL));
}

/// Bytes of the string that a text begins with, its quotes among them.
fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        match bytes[at] {
            b'"' => return at + 1,
            // Whatever is escaped belongs to the string.
            _ => at += 2,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9_f64).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\\[\\]{},:\"\\\\ a]*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|all| all.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_what_serde_writes(value in value()) {
            let pretty = format!("{value:#}");
            prop_assert_eq!(indented(&value.to_string()), pretty.clone());
            prop_assert_eq!(indented(&pretty), pretty);
        }

        #[test]
        fn nothing_is_lost_of_what_is_no_json(text in any::<String>()) {
            let kept = |text: &str| text.split_ascii_whitespace().collect::<String>();
            prop_assert_eq!(kept(&indented(&text)), kept(&text));
        }
    }

    #[test]
    fn the_last_of_a_text_may_be_an_escape() {
        assert_eq!(indented("\"a\\"), "\"a\\");
        assert_eq!(
            indented(&json!({"a": [], "b": {}, "c": [1]}).to_string()),
            "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1\n  ]\n}"
        );
    }
}
