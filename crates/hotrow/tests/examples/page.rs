//! The operations page shows numbers unchanged: its script, run by Node.

use std::process::Command;

use super::root;

#[test]
fn numbers_keep_all_their_digits() {
    let script = std::fs::read_to_string(root().join("crates/hotrow-http/src/page/exact.js")).unwrap();
    let shown = |json: &str| {
        let show = format!("{script}\nprocess.stdout.write(show(parseExactly(process.argv[1])));");
        let output =
            Command::new("node").args(["--input-type=module", "-e", &show, "--", json]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for number in ["9007199254740993", "-9223372036854775808", "12.50", "0.0", "1e400", "0", "7", "0.1", "-3"]
    {
        assert_eq!(shown(number), number);
        assert_eq!(shown(&format!("[{number},{number}]")), format!("[\n  {number},\n  {number}\n]"));
    }
    // A text that only looks like a number, or like the script's placeholder of one, stays a text.
    for text in ["9007199254740993", "a \\\"9007199254740993\\\" b", "\\\\u0000\\\\", "\\\\\\\"12.50"] {
        let json = format!("{{\n  \"9007199254740993\": \"{text}\"\n}}");
        assert_eq!(shown(&json), json);
    }
    assert_eq!(shown(r#""12.50""#), "12.50");
    assert_eq!(shown("null"), "null");
}
