//! Tests which representations of a value have the same key and which do not.

use super::*;

fn spec(forms: &[ValueForm]) -> KeySpec {
    let columns = forms
        .iter()
        .enumerate()
        .map(|(index, &form)| KeyColumn {
            name: format!("c{index}"),
            attnum: i16::try_from(index + 1).unwrap(),
            form,
            source: KeySource::Param(u16::try_from(index).unwrap()),
        })
        .collect();
    KeySpec { table: 16_400, columns }
}

fn text(bytes: &[u8]) -> ParamValue<'_> {
    ParamValue { format: Format::Text, bytes }
}

fn binary(bytes: &[u8]) -> ParamValue<'_> {
    ParamValue { format: Format::Binary, bytes }
}

fn one(form: ValueForm, value: ParamValue<'_>) -> Key {
    spec(&[form]).key(|_| Some(value)).unwrap()
}

#[test]
fn an_integer_has_one_key_in_every_representation() {
    let five = one(ValueForm::Integer, text(b"5"));
    for same in [text(b" 5 "), text(b"+5"), text(b"005"), binary(&[0, 5]), binary(&[0, 0, 0, 5])] {
        assert_eq!(one(ValueForm::Integer, same), five, "{same:?}");
    }
    assert_eq!(one(ValueForm::Integer, binary(&5_i64.to_be_bytes())), five);
    assert_eq!(
        one(ValueForm::Integer, binary(&(-5_i16).to_be_bytes())),
        one(ValueForm::Integer, text(b"-5"))
    );
    assert_ne!(one(ValueForm::Integer, text(b"6")), five);
    let mut constant = spec(&[ValueForm::Integer]);
    constant.columns[0].source = KeySource::Const("5".to_owned());
    assert_eq!(constant.key(|_| None), Some(five));
}

#[test]
fn a_uuid_has_one_key_in_every_representation() {
    let plain = one(ValueForm::Uuid, text(b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"));
    for same in [&b"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"[..], b"{a0eebc999c0b4ef8bb6d6bb9bd380a11}"] {
        assert_eq!(one(ValueForm::Uuid, text(same)), plain);
    }
    let bytes = 0xa0ee_bc99_9c0b_4ef8_bb6d_6bb9_bd38_0a11_u128.to_be_bytes();
    assert_eq!(one(ValueForm::Uuid, binary(&bytes)), plain);
    assert_ne!(one(ValueForm::Uuid, text(b"a0eebc99")), plain);
}

#[test]
fn a_boolean_has_one_key_in_every_representation() {
    for yes in ["t", "TRUE", "yes", "on", "1", " y "] {
        assert_eq!(one(ValueForm::Bool, text(yes.as_bytes())), one(ValueForm::Bool, binary(&[1])), "{yes}");
    }
    for no in ["f", "False", "n", "of", "0"] {
        assert_eq!(one(ValueForm::Bool, text(no.as_bytes())), one(ValueForm::Bool, binary(&[0])), "{no}");
    }
    assert_ne!(one(ValueForm::Bool, text(b"o")), one(ValueForm::Bool, binary(&[1])), "o is ambiguous");
}

#[test]
fn null_or_a_missing_value_has_no_key() {
    let pair = spec(&[ValueForm::Integer, ValueForm::Bytes]);
    assert_eq!(pair.key(|index| (index == 0).then_some(text(b"1"))), None);
}

#[test]
fn adjacent_values_do_not_run_into_each_other() {
    let pair = spec(&[ValueForm::Bytes, ValueForm::Bytes]);
    let key =
        |a: &'static [u8], b: &'static [u8]| pair.key(|index| Some(text(if index == 0 { a } else { b })));
    assert_ne!(key(b"ab", b"c"), key(b"a", b"bc"));
    assert_ne!(key(b"a", b"b"), key(b"b", b"a"));
}

/// Gateways of different builds must agree on the value. The test therefore pins it.
#[test]
fn the_hash_does_not_change_between_builds() {
    assert_eq!(one(ValueForm::Integer, text(b"5")).hash, 3_130_409_381_274_643_148);
    assert_eq!(one(ValueForm::Bytes, text(b"order-1")).hash, 7_954_440_744_978_885_979);
}

#[test]
fn keys_order_by_table_then_hash() {
    let (low, high) = (Key { table: 1, hash: 9 }, Key { table: 2, hash: 0 });
    assert!(low < high);
    assert!(Key { table: 1, hash: 1 } < low);
}

fn listed(sources: Vec<KeySource>) -> KeySpec {
    let mut spec = spec(&vec![ValueForm::Integer; sources.len()]);
    spec.columns.iter_mut().zip(sources).for_each(|(column, source)| column.source = source);
    spec
}

fn keys(spec: &KeySpec, params: &[Option<ParamValue<'static>>]) -> Option<Vec<Key>> {
    let rows = spec.rows(|index| params[usize::from(index)])?;
    Some(rows.into_iter().map(|row| row.key).collect())
}

#[test]
fn a_row_has_the_same_key_in_a_list_as_alone() {
    let alone = |value| one(ValueForm::Integer, value);
    let mut expected = vec![alone(text(b"5")), alone(text(b"7"))];
    expected.sort();
    let constant = |text: &str| KeySource::Const(text.to_owned());
    let list = listed(vec![KeySource::OneOf(vec![constant("7"), KeySource::Param(0), KeySource::Param(1)])]);
    assert!(!list.is_single() && list.key(|_| Some(text(b"5"))).is_none());
    assert_eq!(keys(&list, &[Some(binary(&[0, 5])), None]).as_ref(), Some(&expected), "NULL is no row");
    assert_eq!(keys(&list, &[Some(text(b"5")), Some(text(b"05"))]).as_ref(), Some(&expected), "each once");
    let array = listed(vec![KeySource::Element(0)]);
    assert_eq!(keys(&array, &[Some(text(b"{5,NULL, 7,7}"))]), Some(expected));
    assert_eq!(keys(&array, &[Some(text(b"{}"))]), Some(vec![]));
    assert_eq!(keys(&array, &[None]), Some(vec![]), "an array that is NULL");
    assert_eq!(keys(&array, &[Some(text(b"[0:0]={5}"))]), None);
}

#[test]
fn lists_of_two_columns_name_all_combinations() {
    let pair = spec(&[ValueForm::Integer, ValueForm::Integer]);
    let alone = |a: &'static [u8], b: &'static [u8]| {
        pair.key(|index| Some(text(if index == 0 { a } else { b }))).unwrap()
    };
    let product = listed(vec![KeySource::Element(0), KeySource::Element(1)]);
    let mut expected = vec![alone(b"1", b"3"), alone(b"1", b"4"), alone(b"2", b"3"), alone(b"2", b"4")];
    expected.sort();
    assert_eq!(keys(&product, &[Some(text(b"{1,2}")), Some(text(b"{3,4}"))]), Some(expected));
    let rows = product.rows(|_| Some(text(b"{1}"))).unwrap();
    assert_eq!(rows[0].values.iter().map(|value| value.bytes).collect::<Vec<_>>(), [b"1", b"1"]);
    let many: &'static str = Box::leak(format!("{{{}}}", "8,".repeat(10) + "8").into_boxed_str());
    assert_eq!(keys(&product, &[Some(text(many.as_bytes())); 2]), None, "121 combinations");
}

#[test]
fn rows_that_are_given_one_by_one_have_a_key_each() {
    let pair = spec(&[ValueForm::Integer, ValueForm::Integer]);
    let alone = |a: &'static [u8], b: &'static [u8]| {
        pair.key(|index| Some(text(if index == 0 { a } else { b }))).unwrap()
    };
    let expected = |rows: &[(&'static [u8], &'static [u8])]| {
        let mut keys: Vec<Key> = rows.iter().map(|(a, b)| alone(a, b)).collect();
        keys.sort();
        Some(keys)
    };
    let constant = |text: &str| Some(KeySource::Const(text.to_owned()));
    let values = listed(vec![
        KeySource::Each(vec![Some(KeySource::Param(0)), constant("2"), constant("2"), None]),
        KeySource::Each(vec![constant("3"), constant("4"), constant("4"), constant("5")]),
    ]);
    assert_eq!(values.rows_named(), 4);
    assert_eq!(keys(&values, &[Some(text(b"1"))]), expected(&[(b"1", b"3"), (b"2", b"4")]), "each once");
    assert_eq!(keys(&values, &[None]), expected(&[(b"2", b"4")]), "NULL equals no row");
    let arrays = listed(vec![KeySource::Unnested(0), KeySource::Unnested(1)]);
    let both = [Some(text(b"{1,NULL,2,6}")), Some(text(b"{3,4,5}"))];
    assert_eq!(keys(&arrays, &both), expected(&[(b"1", b"3"), (b"2", b"5")]));
    assert_eq!(keys(&arrays, &[Some(text(b"{1}")), None]), Some(vec![]), "an array that is NULL");
    let first_for_all = listed(vec![KeySource::Param(0), KeySource::Unnested(1)]);
    let shared = [Some(text(b"1")), Some(text(b"{3,4}"))];
    assert_eq!(keys(&first_for_all, &shared), expected(&[(b"1", b"3"), (b"1", b"4")]));
    let many: &'static str = Box::leak(format!("{{{}}}", "8,".repeat(100) + "8").into_boxed_str());
    assert_eq!(keys(&arrays, &[Some(text(many.as_bytes())); 2]), None, "101 rows");
}
