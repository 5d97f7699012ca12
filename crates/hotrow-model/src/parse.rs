//! Reads a command as scripts write it: `increment a 2 #r1`, `create_sale shoe 3 per_buyer=2 hold=1`. Commands are judged
//! elsewhere.
//!
//! A request ID follows `#`.

use std::str::FromStr;

use crate::{Command, CounterSettings, Id, SaleTerms, Strategy};

/// A word that a script cannot have there.
#[derive(Debug, thiserror::Error)]
#[error("the script needs {wanted} where it says {found:?}; correct that line")]
pub struct ParseError {
    wanted: &'static str,
    found: String,
}

impl ParseError {
    pub(crate) fn new(wanted: &'static str, found: &str) -> Self {
        Self { wanted, found: found.to_owned() }
    }
}

/// The words of a line. Words with a name (`hold=1`) are kept separately.
struct Words<'a> {
    line: &'a str,
    plain: std::vec::IntoIter<&'a str>,
    named: Vec<(&'a str, &'a str)>,
    request: Option<Id>,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Result<Self, ParseError> {
        let (mut plain, mut named, mut request) = (Vec::new(), Vec::new(), None);
        for word in line.split_whitespace() {
            if let Some(id) = word.strip_prefix('#') {
                request = Some(id.parse()?);
            } else if let Some(pair) = word.split_once('=') {
                named.push(pair);
            } else {
                plain.push(word);
            }
        }
        Ok(Self { line, plain: plain.into_iter(), named, request })
    }

    fn text(&mut self) -> Result<String, ParseError> {
        self.plain.next().map(str::to_owned).ok_or_else(|| ParseError::new("one more word", self.line))
    }

    fn number(&mut self) -> Result<i64, ParseError> {
        number(&self.text()?)
    }

    fn number_or(&mut self, default: i64) -> Result<i64, ParseError> {
        self.plain.next().map_or(Ok(default), number)
    }

    fn id(&mut self) -> Result<Id, ParseError> {
        self.text()?.parse()
    }

    fn option(&self, name: &str) -> Result<Option<i64>, ParseError> {
        let found = self.named.iter().find(|(named, _)| *named == name);
        found.map(|(_, value)| number(value)).transpose()
    }
}

fn number(word: &str) -> Result<i64, ParseError> {
    word.parse().map_err(|_| ParseError::new("a number", word))
}

impl FromStr for Command {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Self, ParseError> {
        let words = &mut Words::of(line)?;
        let request = words.request;
        let command = match words.text()?.as_str() {
            "create_counter" => Self::CreateCounter {
                counter: words.text()?,
                settings: CounterSettings {
                    strategy: match words.plain.next() {
                        None | Some("ledger") => Strategy::Ledger,
                        Some("log") => Strategy::Log,
                        Some(other) => return Err(ParseError::new("`ledger` or `log`", other)),
                    },
                    min: words.option("min")?,
                    max: words.option("max")?,
                },
            },
            "increment" => Self::Increment { counter: words.text()?, amount: words.number_or(1)?, request },
            "drain" => Self::Drain { counter: words.text()?, request },
            "counter" => Self::Counter { counter: words.text()? },
            "create_sale" => Self::CreateSale {
                item: words.text()?,
                terms: SaleTerms {
                    stock: words.number()?,
                    per_buyer: words.option("per_buyer")?,
                    starts_at: words.option("starts")?,
                    ends_at: words.option("ends")?,
                    hold: words.option("hold")?,
                },
            },
            "reserve" => Self::Reserve {
                item: words.text()?,
                buyer: words.text()?,
                quantity: words.number_or(1)?,
                request,
                new: Id::default(),
            },
            "reserve_all" => Self::ReserveAll {
                items: words.text()?.split(',').map(str::to_owned).collect(),
                quantities: words.text()?.split(',').map(number).collect::<Result<_, _>>()?,
                buyer: words.text()?,
                request,
                new: Vec::new(),
            },
            "confirm" => Self::Confirm { reservation: words.id()? },
            "cancel" => Self::Cancel { reservation: words.id()? },
            "extend" => Self::Extend { reservation: words.id()?, hold: words.number()? },
            "restock" => Self::Restock { item: words.text()?, quantity: words.number()?, request },
            "sale" => Self::Sale { item: words.text()? },
            other => return Err(ParseError::new("a command", other)),
        };
        match words.plain.next() {
            None => Ok(command),
            Some(more) => Err(ParseError::new("the end of the command", more)),
        }
    }
}
