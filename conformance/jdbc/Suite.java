// Runs the tests of the JDBC suite that the other files have added, all or those that $ONLY lists, each on new tables, and
// writes the outcomes to $RESULTS. No jar contains the drivers' own tests.

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.*;
import java.util.*;

public class Suite {
    interface Test {
        void run() throws Exception;
    }

    static final Map<String, Test> TESTS = new LinkedHashMap<>();
    static final String UPDATE = "update item set stock = stock - ? where id = ? and stock >= ?";

    static String url(String... options) {
        Map<String, String> env = System.getenv();
        String database = "jdbc:postgresql://" + env.get("PGHOST") + ":" + env.get("PGPORT") + "/" + env.get("PGDATABASE");
        return database + "?user=" + env.get("PGUSER") + "&" + String.join("&", options);
    }

    static Connection connect(String... options) throws SQLException {
        return DriverManager.getConnection(url(options));
    }

    static void check(Object expected, Object found) {
        if (!Objects.equals(String.valueOf(expected), String.valueOf(found))) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    static SQLException fails(String state, Test test) throws Exception {
        try {
            test.run();
        } catch (SQLException error) {
            check(state, error.getSQLState());
            return error;
        }
        throw new AssertionError("no " + state);
    }

    static String value(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            check(true, rows.next());
            return rows.getString(1);
        }
    }

    static void execute(Connection connection, String... texts) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String text : texts) {
                statement.execute(text);
            }
        }
    }

    static int sell(PreparedStatement update, int count, int id) throws SQLException {
        update.setInt(1, count);
        update.setInt(2, id);
        update.setInt(3, count);
        return update.executeUpdate();
    }

    static void reset() throws SQLException {
        try (Connection connection = connect()) {
            execute(connection, "drop table if exists item, event cascade",
                "create table item (id int primary key, stock int not null check (stock >= 0), label text)",
                "create table event (id bigint generated always as identity primary key, item int references item, note text)",
                "insert into item select id, 1000, 'item ' || id from generate_series(1, 20) id");
        }
    }

    static String json(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            out.append(c == '"' || c == '\\' ? "\\" + c : c < ' ' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        }
        return out.append('"').toString();
    }

    public static void main(String[] arguments) throws Exception {
        Statements.add();
        Sessions.add();
        String list = System.getenv("ONLY");
        Set<String> only = list == null ? TESTS.keySet() : new HashSet<>(Files.readAllLines(Path.of(list)));
        int run = 0;
        try (PrintWriter results = new PrintWriter(System.getenv("RESULTS"), StandardCharsets.UTF_8)) {
            for (Map.Entry<String, Test> test : TESTS.entrySet()) {
                if (!only.contains(test.getKey())) {
                    continue;
                }
                String outcome = "passed";
                String message = "";
                try {
                    reset();
                    test.getValue().run();
                } catch (Throwable error) {
                    outcome = "failed";
                    message = error.toString();
                }
                run++;
                results.printf("{\"test\": %s, \"outcome\": \"%s\", \"message\": %s}%n", json(test.getKey()), outcome, json(message));
            }
            results.printf("{\"end\": %d}%n", run);
        }
        System.exit(0); // threads of a failed test may still wait
    }
}
