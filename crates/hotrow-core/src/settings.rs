//! The settings that a client has changed in its session. They are a part of its pool's identity: the pool's connections
//! begin with them. No connections here.

use std::collections::BTreeMap;

/// The settings that decide how the server reads a statement's text. A prepared statement keeps the meaning that its text
/// had when it was prepared.
const PARSING: [&str; 13] = [
    "array_nulls",
    "backslash_quote",
    "client_encoding",
    "DateStyle",
    "escape_string_warning",
    "IntervalStyle",
    "lc_monetary",
    "standard_conforming_strings",
    "TimeZone",
    "timezone_abbreviations",
    "transform_null_equals",
    "xmlbinary",
    "xmloption",
];

/// Settings that a SET gives the value in its text, whatever is in force, in the catalog, in files or granted to the role.
/// Any role may set them.
const PLAIN: &str = "
    array_nulls backslash_quote bytea_output client_min_messages constraint_exclusion cpu_index_tuple_cost
    cpu_operator_cost cpu_tuple_cost cursor_tuple_fraction default_statistics_target default_transaction_deferrable
    default_transaction_isolation default_transaction_read_only effective_cache_size enable_async_append
    enable_bitmapscan enable_gathermerge enable_hashagg enable_hashjoin enable_incremental_sort enable_indexonlyscan
    enable_indexscan enable_material enable_memoize enable_mergejoin enable_nestloop enable_parallel_append
    enable_parallel_hash enable_partition_pruning enable_partitionwise_aggregate enable_partitionwise_join
    enable_seqscan enable_sort enable_tidscan escape_string_warning extra_float_digits from_collapse_limit geqo
    geqo_effort geqo_generations geqo_pool_size geqo_seed geqo_selection_bias geqo_threshold gin_fuzzy_search_limit
    hash_mem_multiplier idle_in_transaction_session_timeout idle_session_timeout intervalstyle jit jit_above_cost
    jit_inline_above_cost jit_optimize_above_cost join_collapse_limit lock_timeout maintenance_work_mem
    max_parallel_maintenance_workers max_parallel_workers max_parallel_workers_per_gather
    min_parallel_index_scan_size min_parallel_table_scan_size parallel_leader_participation parallel_setup_cost
    parallel_tuple_cost plan_cache_mode quote_all_identifiers random_page_cost recursive_worktable_factor
    row_security search_path seq_page_cost standard_conforming_strings statement_timeout synchronize_seqscans
    synchronous_commit timezone transaction_timeout transform_null_equals work_mem xmlbinary xmloption
";

/// The setting whose SET depends on the catalog's conversions, unless the value is the database's encoding.
pub(crate) const CLIENT_ENCODING: &str = "client_encoding";

/// Whether the effect of a SET of this setting, whose name is in lower case, depends on the text alone.
pub(crate) fn is_plain(name: &str) -> bool {
    PLAIN.split_ascii_whitespace().any(|plain| plain == name)
}

/// Whether a statement reaches the same code under any value of this setting, whose name is in lower case. `search_path` decides
/// what a name means, `row_security` whether policies apply, and `standard_conforming_strings` where a string ends.
pub(crate) fn keeps_meaning(name: &str) -> bool {
    const DECIDES: [&str; 3] = ["search_path", "row_security", "standard_conforming_strings"];
    name.contains('.') || is_plain(name) && !DECIDES.contains(&name)
}

/// The names of these settings, as the text of an array. A session that sets one of them keeps its value, also if it is
/// the value at the login: the server's configuration can change later.
pub fn plain_names() -> String {
    array(PLAIN.split_ascii_whitespace())
}

/// A SET or RESET whose effect depends on its text alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainSet {
    /// The setting, in lower case.
    pub name: String,
    /// It gives the setting the value of the login.
    pub resets: bool,
    /// The server's command tag.
    pub tag: &'static str,
}

/// How the server reads texts on a connection that a session holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Parsing {
    /// As on the other connections of the pool.
    AsPool,
    /// By settings that end with the transaction.
    Locally,
    /// A statement ran that may have changed the settings, or the server has reported other ones.
    Otherwise,
}

/// Whether a text mentions one of these settings, or the beginning of a command that changes one under another name.
pub fn mentions_parsing(text: &[u8]) -> bool {
    const OTHERS: [&str; 4] = ["zone", "names", "option", "u&"];
    let all = || PARSING.iter().chain(&OTHERS).map(|name| name.as_bytes());
    all().any(|name| text.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name)))
}

/// Whether a text means the same under all these settings: it has no constant in quotes, no NULL and only ASCII characters.
pub fn parses_alike(text: &[u8]) -> bool {
    let is_null = |word: &[u8]| word.eq_ignore_ascii_case(b"null");
    let quotes = |pair: &[u8]| pair[0] == b'$' && !pair[1].is_ascii_digit();
    text.is_ascii() && !text.contains(&b'\'') && !text.windows(2).any(quotes) && !text.windows(4).any(is_null)
}

/// Names and canonical values, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Reads `name=value` pairs, separated by spaces, with values as hexadecimal digits. None if other connections
    /// cannot be given these settings: if the role cannot read a value, or if a value contains other characters than
    /// ASCII ones, which depend on the client's encoding.
    pub fn read(listed: &str) -> Option<Self> {
        let one = |pair: &str| {
            let (name, digits) = pair.split_once('=')?;
            let value = String::from_utf8(from_hex(digits)?).ok().filter(|value| value.is_ascii())?;
            Some((name.to_owned(), value))
        };
        let mut settings = listed.split_whitespace().map(one).collect::<Option<Vec<_>>>()?;
        settings.sort();
        Some(Settings(settings))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether this setting, in any case, is one of them.
    pub fn contains(&self, wanted: &str) -> bool {
        self.0.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    }

    /// Whether these SETs and RESETs can have led from `before` to these settings: those that were set are among them, those that
    /// were reset are not, and all others are as before.
    pub fn follow<'a>(&self, sets: impl IntoIterator<Item = &'a PlainSet>, before: &Settings) -> bool {
        let last: BTreeMap<&str, bool> = sets.into_iter().map(|set| (&*set.name, set.resets)).collect();
        let names: Vec<&str> = last.keys().copied().collect();
        last.iter().all(|(name, resets)| self.contains(name) != *resets)
            && self.all_but(&names).eq(before.all_but(&names))
    }

    /// The settings that these SETs and RESETs lead to, if they lead to `outcome` from other settings.
    #[must_use]
    pub fn led_by(&self, sets: &[PlainSet], outcome: &Settings) -> Settings {
        let names: Vec<&str> = sets.iter().map(|set| &*set.name).collect();
        let mut settings: Vec<_> = self.all_but(&names).cloned().collect();
        settings.extend(outcome.0.iter().filter(|(name, _)| is_among(&names, name)).cloned());
        settings.sort();
        Settings(settings)
    }

    fn all_but<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a (String, String)> {
        self.0.iter().filter(move |(name, _)| !is_among(names, name))
    }

    /// Whether the server reads texts under these settings as under the others.
    pub fn parses_as(&self, others: &Settings) -> bool {
        let reads = |settings: &Settings| -> Vec<(String, String)> {
            let is_one = |name: &str| PARSING.iter().any(|one| one.eq_ignore_ascii_case(name));
            settings.0.iter().filter(|(name, _)| is_one(name)).cloned().collect()
        };
        reads(self) == reads(others)
    }

    /// The same without some.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        Settings(self.all_but(names).cloned().collect())
    }

    /// The names and the values, each as the text of an array, for a client with this name.
    pub fn arrays(&self, application_name: &str) -> [String; 2] {
        let all = || self.iter().chain([("application_name", application_name)]);
        [array(all().map(|(name, _)| name)), array(all().map(|(_, value)| value))]
    }
}

/// Whether a setting, in any case, is one of these.
fn is_among(names: &[&str], name: &str) -> bool {
    names.iter().any(|one| one.eq_ignore_ascii_case(name))
}

/// The bytes of hexadecimal digits.
pub fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The text of a PostgreSQL array of these elements.
pub fn array(elements: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted = |element: &str| format!("\"{}\"", element.replace('\\', r"\\").replace('"', "\\\""));
    let quoted = elements.into_iter().map(|element| quoted(element.as_ref()));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn settings_are_read_in_the_order_of_their_names() {
        let settings = Settings::read("work_mem=34303936 DateStyle=49534f2c20444d59 search_path=").unwrap();
        let pairs = owned(&[("DateStyle", "ISO, DMY"), ("search_path", ""), ("work_mem", "4096")]);
        assert_eq!(settings, Settings(pairs));
        assert_eq!(Settings::read(""), Some(Settings::default()));
    }

    #[test]
    fn a_value_that_is_hidden_or_not_ascii_cannot_be_given_to_other_connections() {
        for listed in ["work_mem", "work_mem=3", "work_mem=zz", "search_path=c3a9", "a=31 work_mem"] {
            assert_eq!(Settings::read(listed), None, "{listed}");
        }
    }

    #[test]
    fn texts_with_constants_are_read_differently() {
        for text in ["select $1", "update t set n = n + 12 where id = $2", "select 1, $12"] {
            assert!(parses_alike(text.as_bytes()), "{text}");
        }
        for text in ["select 'a'", "select $$a$$", "select $q$a$q$", "select a = NULL", "select \"é\""] {
            assert!(!parses_alike(text.as_bytes()), "{text}");
        }
        let settings = |pairs| Settings(owned(pairs));
        let berlin = settings(&[("TimeZone", "Europe/Berlin"), ("work_mem", "64")]);
        assert!(berlin.parses_as(&settings(&[("TimeZone", "Europe/Berlin")])));
        assert!(!berlin.parses_as(&settings(&[("TimeZone", "UTC")])));
        assert!(!berlin.parses_as(&settings(&[])));
    }

    #[test]
    fn the_settings_that_decide_how_texts_are_read_are_found_in_a_text() {
        for text in ["set local TIMEZONE to 'x'", "set time zone 3", "set names 'x'", "reset datestyle"] {
            assert!(mentions_parsing(text.as_bytes()), "{text}");
        }
        for text in ["set local work_mem = 64", "set statement_timeout to 0", "set search_path = a, b"] {
            assert!(!mentions_parsing(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn settings_are_found_in_any_case_and_can_be_left_out() {
        let settings = Settings(owned(&[("DateStyle", "German"), ("lock_timeout", "64")]));
        assert!(settings.contains("datestyle") && !settings.contains("work_mem"));
        let others = settings.without(&["lock_timeout"]);
        assert_eq!(others, Settings(owned(&[("DateStyle", "German")])));
    }

    #[test]
    fn settings_differ_in_those_that_a_text_names() {
        let settings = |pairs| Settings(owned(pairs));
        let before = settings(&[("TimeZone", "UTC"), ("work_mem", "64")]);
        let after = settings(&[("TimeZone", "Asia/Tokyo"), ("jit", "on"), ("work_mem", "64")]);
        let plain = |name: &str, resets| PlainSet { name: name.to_owned(), resets, tag: "SET" };
        let sets = |names: &[&str]| names.iter().map(|name| plain(name, false)).collect::<Vec<_>>();
        let resets = |names: &[&str]| names.iter().map(|name| plain(name, true)).collect::<Vec<_>>();
        assert!(after.follow(&sets(&["timezone", "jit"]), &before));
        assert!(before.follow(&sets(&["timezone"]), &before));
        assert!(!after.follow(&sets(&["timezone"]), &before), "jit has changed too");
        assert!(!before.follow(&sets(&["jit"]), &before), "its value would follow the configuration");
        assert!(!before.follow(&resets(&["jit"]), &after), "the time zone has changed too");
        assert!(before.without(&["TimeZone"]).follow(&resets(&["timezone", "jit"]), &after));
        assert!(!before.follow(&resets(&["work_mem"]), &before), "it is still set");
        let both = [plain("jit", false), plain("jit", true)];
        assert!(before.follow(&both, &before) && !after.follow(&both, &after), "the last one counts");
        let other = settings(&[("work_mem", "32")]);
        assert_eq!(
            other.led_by(&sets(&["timezone", "jit"]), &after),
            settings(&[("TimeZone", "Asia/Tokyo"), ("jit", "on"), ("work_mem", "32")])
        );
        assert_eq!(
            after.led_by(&resets(&["timezone", "jit"]), &before.without(&["TimeZone"])),
            settings(&[("work_mem", "64")])
        );
    }

    #[test]
    fn the_elements_of_arrays_are_quoted() {
        let settings = Settings(owned(&[("search_path", r#""a\b", c"#), ("work_mem", "")]));
        let [names, values] = settings.arrays("x");
        assert_eq!(names, r#"{"search_path","work_mem","application_name"}"#);
        assert_eq!(values, r#"{"\"a\\b\", c","","x"}"#);
    }
}
