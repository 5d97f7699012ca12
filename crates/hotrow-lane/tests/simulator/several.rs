//! Tests units of several statements or rows: they are atomic, never split over two batches, and each of their
//! rows counts.

use hotrow_lane::lane::LaneKind::Write;
use hotrow_lane::limits;

use super::notation::script;

#[test]
fn units_are_sorted_by_their_least_row() {
    script(
        Write,
        "
        submit 1c 2b+a 3-+d 4a      -> connect
        connected                   -> write 2b+a 4a 1c 3-+d
        commits                     -> answer 2b+a 4a 1c 3-+d
        ",
    );
}

#[test]
fn each_statement_owes_an_answer() {
    script(
        Write,
        "
        submit 1a+b 2c              -> connect
        connected                   -> write 1a+b 2c
        written, answered 2         ->
        # Two answers belong to the first unit, so the error belongs to the second.
        error, ready                -> alone 2c; write 1a+b
        commits                     -> answer 1a+b
        ",
    );
}

#[test]
fn a_unit_that_fails_at_any_statement_leaves_as_a_whole() {
    script(
        Write,
        "
        submit 1a 2a+b 3b           -> connect
        connected                   -> write 1a 2a+b 3b
        fails-at 2a+b/2             -> alone 2a+b; write 1a 3b
        commits                     -> answer 1a 3b
        ",
    );
}

#[test]
fn the_row_of_the_statement_that_met_a_lock_is_blocked() {
    script(
        Write,
        "
        submit 1a+b                 -> connect
        connected                   -> write 1a+b
        blocks-at 1a+b/2            -> alone 1a+b blocking b
        submit 2a 3b 4c+b 5a+c      -> write 2a
        commits                     -> write 5a+c; answer 2a
        done 1a+b, unblocked b      ->
        commits                     -> write 3b 4c+b; answer 5a+c
        ",
    );
}

#[test]
fn versions_of_a_row_are_counted_over_all_statements() {
    script(
        Write,
        "
        submit 1a+b%3 2b%3 3c+b%3 4b%3 -> connect
        connected                   -> write 1a+b 2b 3c+b
        commits                     -> write 4b; answer 1a+b 2b 3c+b
        commits                     -> answer 4b
        # A unit that makes more versions by itself has its own batch.
        submit 5a+a+a%2 6a%2        -> write 5a+a+a
        commits                     -> write 6a; answer 5a+a+a
        ",
    );
}

#[test]
fn after_a_lock_batches_lock_their_rows_first_and_in_order() {
    script(
        Write,
        "
        submit 1b+a 2c              -> connect
        connected                   -> write 1b+a 2c
        blocks-at 1b+a/2            -> alone 1b+a blocking a; write 2c
        commits                     -> answer 2c
        done 1b+a, unblocked a      ->
        submit 3c+b                 -> write 3c+b
        submit 4d+a 5c 6b 7-+a      ->
        commits                     -> write {a b c d} 4d+a 7-+a 6b 5c; answer 3c+b
        # An outsider has locked the third row. It belongs to the first unit that claims it.
        written, locked 2           ->
        blocked, ready              -> alone 5c blocking c; write {a b d} 4d+a 7-+a 6b
        commits                     -> answer 4d+a 7-+a 6b
        ",
    );
}

#[test]
fn a_statement_on_several_rows_claims_each_of_them() {
    script(
        Write,
        "
        submit 1ca 2b 3bd%2 4d%1 5a%1 -> connect
        connected                   -> write 1ca 2b 3bd
        commits                     -> write 5a 4d; answer 1ca 2b 3bd
        # It is one statement: one answer is owed.
        submit 6ab 7c               ->
        commits                     -> write 6ab 7c; answer 5a 4d
        written, answered 1         ->
        error, ready                -> alone 7c; write 6ab
        commits                     -> answer 6ab
        ",
    );
}

#[test]
fn a_statement_on_several_rows_locks_them_ahead_one_by_one() {
    script(
        Write,
        "
        submit 1ba 2c               -> connect
        connected                   -> write 1ba 2c
        # Without a lock ahead, it is not known which row is locked.
        blocks-at 1ba/1             -> alone 1ba blocking b; write 2c
        commits                     -> answer 2c
        done 1ba, unblocked b       ->
        submit 3e                   -> write 3e
        submit 4cbd 5a              ->
        commits                     -> write {a b c d} 5a 4cbd; answer 3e
        written, locked 2           ->
        # Now it is known.
        blocked, ready              -> alone 4cbd blocking c; write 5a
        submit 6b 7c                ->
        commits                     -> write 6b; answer 5a
        commits                     -> answer 6b
        done 4cbd, unblocked c      -> write 7c
        commits                     -> answer 7c
        ",
    );
}

#[test]
fn a_batch_has_a_bounded_number_of_rows() {
    let rows: String = ('a'..='z').cycle().take(limits::UNIT_ROWS_MAX).collect();
    let fit = limits::BATCH_STATEMENTS_MAX / limits::UNIT_ROWS_MAX;
    let (first, last) = (format!("1..{fit}{rows}"), format!("{}{rows}", fit + 1));
    script(
        Write,
        &format!(
            "submit {first} {last}  -> connect
             connected              -> write {first}
             commits                -> write {last}; answer {first}"
        ),
    );
}

/// An outsider could change what it reads, and commit between this reading and the commit of a batch on which it depends.
#[test]
fn a_unit_that_reads_without_a_lock_has_its_batch_for_itself() {
    script(
        Write,
        "
        submit 1a 2b+c$$ 3d         -> connect
        connected                   -> write 1a
        commits                     -> write 2b+c$$; answer 1a
        commits                     -> write 3d; answer 2b+c$$
        commits                     -> answer 3d
        ",
    );
}

#[test]
fn a_unit_that_first_reads_one_row_only_waits_for_its_own_session() {
    script(
        Write,
        "
        submit 1a 1b+c$ 2b+c$ 2d    -> connect
        connected                   -> write 1a 2b+c$ 2d
        commits                     -> write 1b+c$; answer 1a 2b+c$ 2d
        commits                     -> answer 1b+c$
        ",
    );
}
