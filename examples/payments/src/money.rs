//! Amounts and currencies in minor units of ISO 4217, without fractions or conversions.

use crate::words::NotAWord;

/// The largest single payment in minor units. It is far above real payments and far below the limit of the sums.
pub const MOST: i64 = 1_000_000_000_000;

/// The active codes of ISO 4217, without funds and metals.
const CODES: &str = "
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY
    COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR
    ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK
    MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF
    SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU
    UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
";

/// A currency, as its three letters.
pub fn currency(code: &str) -> Result<&'static str, NotAWord> {
    CODES
        .split_ascii_whitespace()
        .find(|known| *known == code)
        .ok_or_else(|| NotAWord(code.to_owned(), "the currencies of ISO 4217, in capitals".to_owned()))
}

/// Whether this amount can be paid.
pub fn is_payable(amount: i64) -> bool {
    (1..=MOST).contains(&amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_in_capitals_are_currencies() {
        assert_eq!(currency("INR"), Ok("INR"));
        for wrong in ["inr", "XXX", "IN", "INRU", "", "INR USD", " INR"] {
            assert!(currency(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_day_of_the_largest_payments_still_fits() {
        const { assert!(i64::MAX / MOST > 9_000_000) };
        assert!(is_payable(1) && is_payable(MOST));
        assert!(!is_payable(0) && !is_payable(-1) && !is_payable(MOST + 1));
    }
}
