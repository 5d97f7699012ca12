//! The functions of a distributed hotrow schema that clients call: each finds the shard of its key and calls the shard's
//! function there. They have the signatures of the functions that they replace. This module asks no server.

use crate::functions::{Distribute, Function, functions};
use crate::head::{Head, Parameter, Returns};

/// A function that a distributed hotrow schema replaces: the statement that creates it, and its body.
pub struct Dispatcher {
    /// Without the schema.
    pub name: String,
    /// The text between the dollar signs.
    pub body: String,
    /// The statement.
    pub text: String,
}

/// When a call that waits is repeated, as a column of its answer. A notification on a node does not reach the gateway, which
/// listens on another server.
fn again_in(answer: &str) -> String {
    format!(
        "case when {answer}.again_in is not null then least({answer}.again_in, make_interval(secs => 0.1)) end"
    )
}

/// The functions that find the shard of a call, and the maintenance.
pub fn dispatchers() -> Vec<Dispatcher> {
    let mut all = vec![Head::of("keep").with_own_body()]; // the maintenance also runs on every shard
    for function in functions() {
        let Some(distribute) = &function.distribute else { continue };
        if *distribute != Distribute::Written {
            all.push(single(function, distribute));
            all.extend(function.merge.as_ref().map(|merge| batch_function(&merge.batch, distribute)));
        }
    }
    all
}

/// A function of one call.
fn single(function: &Function, distribute: &Distribute) -> Dispatcher {
    let head = Head::of(&function.name);
    let name = &head.name;
    let arguments = head.arguments(|parameter| format!("{name}.{parameter}"));
    let call = head.call("f.*");
    let (shard, check) = match distribute {
        Distribute::By(key) => (format!("hotrow.shard_of({name}.{key})"), String::new()),
        Distribute::Find(id) => (format!("hotrow.shard_of_reservation({name}.{id})"), String::new()),
        Distribute::OneOf(keys) => (
            format!("hotrow.shard_of({name}.{keys}[1])"),
            format!("    perform hotrow.check_one_shard('{name}', {name}.{keys});\n"),
        ),
        Distribute::List => return list(&head, &arguments),
        Distribute::Sum => return sum(&head),
        Distribute::Written => panic!("the text of {name} is written"),
    };
    let enter = if head.is_stable { "" } else { "    perform hotrow.enter_shard(shard);\n" };
    let run = match &head.returns {
        Returns::Out(names) => {
            format!("    execute format('{call}', shard)\n    into {} using {arguments};\n", names.join(", "))
        }
        Returns::Table(_) | Returns::Rows(_) => {
            format!("    return query execute format('{call}', shard)\n    using {arguments};\n")
        }
        Returns::Value => format!(
            "    execute format('{call}', shard)\n    into answer using {arguments};\n    return answer;\n"
        ),
    };
    let answer = if matches!(head.returns, Returns::Value) { "    answer text;\n" } else { "" };
    head.with_body(&format!(
        "\ndeclare\n    shard int := coalesce({shard}, 0);\n{answer}begin\n{check}{enter}{run}end\n"
    ))
}

/// A batch function. Nearly all batches are for one shard. The others are split, and entered in the order of the shards, so
/// that two batches wait for each other in one direction only.
fn batch_function(batch: &str, distribute: &Distribute) -> Dispatcher {
    let head = Head::of(batch);
    let (key, find) = match distribute {
        Distribute::By(key) => (key, "shard_of"),
        Distribute::Find(id) => (id, "shard_of_reservation"),
        _ => panic!("{batch}: only calls with one key have a batch function"),
    };
    let name = &head.name;
    let arguments = head.arguments(|parameter| format!("{name}.{parameter}"));
    let lengths: Vec<_> =
        head.parameters.iter().map(|it| format!(", cardinality({name}.{})", it.name)).collect();
    let Returns::Table(columns) = &head.returns else { panic!("{batch} returns no table") };
    let column = |(name, _): &(String, String)| match name.as_str() {
        "again_in" => again_in("f"),
        name => format!("f.{name}"),
    };
    let results: Vec<_> = columns.iter().map(column).collect();
    let call = head.call(&results.join(", "));
    let (collect, finish) = each_shard(&head, columns);
    head.with_body(&format!(
        r"
declare
    shards int[];
    one int;
    places int[];
    part jsonb[];
    answers jsonb[];
begin
    shards := array(select distinct coalesce(hotrow.{find}(k.key), 0) from unnest({name}.{key}) k (key) order by 1);
    if cardinality(shards) < 2 then
        one := coalesce(shards[1], 0);
        perform hotrow.enter_shard(one);
        return query execute format('{call}', one)
        using {arguments};
        return;
    end if;
    perform hotrow.check_batch(cardinality({name}.{key}){});
    foreach one in array shards loop
        places := array(select k.place::int from unnest({name}.{key}) with ordinality k (key, place)
            where coalesce(hotrow.{find}(k.key), 0) = one order by k.place);
        perform hotrow.enter_shard(one);
{collect}    end loop;
{finish}end
",
        lengths.concat()
    ))
}

/// The statements that run a part of a batch on its shard, and those after the last part, which return all rows in the order of
/// the calls. The rows of a call have its number in front, or there is one row for each call.
fn each_shard(head: &Head, columns: &[(String, String)]) -> (String, String) {
    let name = &head.name;
    let parts = head.arguments(|parameter| {
        format!(
            "\n            case when {name}.{parameter} is not null then array(select {name}.{parameter}[p.place] \
             from unnest(places) with ordinality p (place, n) order by p.n) end"
        )
    });
    let columns_with_types: Vec<_> = columns.iter().map(|(name, of)| format!("{name} {of}")).collect();
    let call = head.call("array_agg(to_jsonb(f) order by f.ordinality)");
    let run = format!(
        "        execute format('{}with ordinality f', one)\n        into part using {parts};\n",
        call.trim_end_matches('f')
    );
    let has_number = columns[0].0 == "call";
    let collect = if has_number {
        "        for i in 1 .. coalesce(cardinality(part), 0) loop\n\
         \x20           answers := answers || jsonb_set(part[i], '{call}', to_jsonb(places[(part[i] ->> 'call')::int]));\n\
         \x20       end loop;\n"
    } else {
        "        for i in 1 .. cardinality(places) loop\n\
         \x20           answers[places[i]] := part[i];\n        end loop;\n"
    };
    let results: Vec<_> = columns
        .iter()
        .map(|(name, _)| if name == "again_in" { again_in("t") } else { format!("t.{name}") })
        .collect();
    let order = if has_number { "t.call, a.n" } else { "a.n" };
    let finish = format!(
        "    return query select {} from unnest(answers) with ordinality a (answer, n)\n        \
         cross join lateral jsonb_to_record(a.answer) t ({}) order by {order};\n",
        results.join(", "),
        columns_with_types.join(", ")
    );
    (run + collect, finish)
}

/// A page of a list: a page of each shard, of which the first rows remain.
fn list(head: &Head, arguments: &str) -> Dispatcher {
    let name = &head.name;
    let call = head.call("array_agg(to_jsonb(f))");
    let rows = match &head.returns {
        Returns::Table(columns) => {
            let columns: Vec<_> = columns.iter().map(|(name, of)| format!("{name} {of}")).collect();
            format!("jsonb_to_record(a.answer) t ({})", columns.join(", "))
        }
        Returns::Rows(of) => format!("jsonb_populate_record(null::{of}, a.answer) t"),
        _ => panic!("{name} returns no rows"),
    };
    let first = match &head.returns {
        Returns::Table(columns) => columns[0].0.clone(),
        _ => "item".to_owned(),
    };
    head.with_body(&format!(
        r#"
declare
    one int;
    part jsonb[];
    answers jsonb[];
begin
    foreach one in array hotrow.shards() loop
        execute format('{call}', one)
        into part using {arguments};
        answers := answers || part;
    end loop;
    return query select t.* from unnest(answers) a (answer) cross join lateral {rows}
        order by t.{first} collate "C" limit {name}.max;
end
"#
    ))
}

/// A piece of maintenance of limited size: shard after shard, until the limit is reached.
fn sum(head: &Head) -> Dispatcher {
    let (name, call) = (&head.name, head.call("f.*"));
    let Parameter { name: parameter, .. } = &head.parameters[0];
    head.with_body(&format!(
        r"
declare
    one int;
    here bigint;
    total bigint := 0;
begin
    foreach one in array hotrow.shards() loop
        perform hotrow.enter_shard(one);
        execute format('{call}', one)
        into here using ({name}.{parameter} - total)::int;
        total := total + here;
    end loop;
    return total;
end
"
    ))
}

impl Head {
    /// The function as the migrations have it for a distributed hotrow schema.
    pub(super) fn with_own_body(&self) -> Dispatcher {
        self.with_body(&self.body)
    }

    pub(super) fn with_body(&self, body: &str) -> Dispatcher {
        Dispatcher {
            name: self.name.clone(),
            body: body.to_owned(),
            text: format!("{} as $${body}$$;\n", self.text),
        }
    }

    pub(super) fn arguments(&self, value: impl Fn(&str) -> String) -> String {
        self.parameters.iter().map(|parameter| value(&parameter.name)).collect::<Vec<_>>().join(", ")
    }

    /// The call of the shard's function for these columns of its answer `f`, for format() with the shard's number.
    fn call(&self, columns: &str) -> String {
        let values: Vec<_> = (1..=self.parameters.len()).map(|number| format!("${number}")).collect();
        format!(
            "select {columns} from hotrow_shard_%1$s.gate g cross join lateral hotrow_shard_%1$s.{}({}) f",
            self.name,
            values.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distributed_function_is_replaced() {
        let mut all = dispatchers();
        all.extend(super::super::feeds::calls());
        let distributed = functions().iter().filter(|function| function.distribute.is_some());
        for function in distributed {
            let names =
                [Some(function.name.as_str()), function.merge.as_ref().map(|merge| merge.batch.as_str())];
            for name in names.into_iter().flatten() {
                let area = function.area;
                let dispatcher = all.iter().find(|dispatcher| dispatcher.name == name).unwrap_or_else(|| {
                    panic!(
                        "{name}: a distributed hotrow schema has no function for it; add its text to \
                         crates/hotrow-sql/sql/citus/feed_calls.sql or change `distribute` in \
                         crates/hotrow-sql/sql/{area}/functions.toml"
                    )
                });
                let text = &dispatcher.text;
                assert!(
                    text.contains(" security definer set search_path = "),
                    "{name}: only its owner could use it; add `security definer set search_path = pg_catalog, pg_temp` to its \
                     text in crates/hotrow-sql/sql/{area}/: {text}"
                );
            }
        }
        let keep = &all[0];
        assert_eq!(keep.body.matches("on_shards").count(), 3, "{}", keep.body);
    }

    #[test]
    fn the_functions_of_all_areas_are_distributed() {
        for function in functions() {
            let (name, area) = (&function.name, function.area);
            assert!(
                function.distribute.is_some() != (area == "base"),
                "{name}: correct `distribute` in crates/hotrow-sql/sql/{area}/functions.toml; the functions of base have none, \
                 and all others have one"
            );
        }
    }
}
