// One hot row with jOOQ.

package frameworks;

import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.name;
import static org.jooq.impl.DSL.table;
import static org.jooq.impl.DSL.using;

import com.zaxxer.hikari.HikariDataSource;
import org.jooq.SQLDialect;
import org.jooq.impl.SQLDataType;

public class JooqItem {
    public static void main(String[] arguments) throws Exception {
        var load = Load.parse(arguments);
        // What jOOQ's generator would write for this table.
        var item = table(name("item"));
        var id = field(name("item", "id"), SQLDataType.BIGINT.notNull());
        var sold = field(name("item", "sold"), SQLDataType.INTEGER.notNull());
        try (var pool = new HikariDataSource()) {
            pool.setJdbcUrl(load.jdbc());
            pool.setUsername(load.user());
            pool.setMaximumPoolSize(load.workers());
            var create = using(pool, SQLDialect.POSTGRES);
            load.run(
                () -> {
                    create.createTable(item).columns(id, sold).primaryKey(id).execute();
                    create.insertInto(item, id, sold).values(1L, 0).execute();
                },
                () -> create.update(item).set(sold, sold.plus(1)).where(id.eq(1L)).execute(),
                () -> create.transaction(transaction -> {
                    int before = transaction.dsl().select(sold).from(item).where(id.eq(1L)).forUpdate().fetchSingle(sold);
                    transaction.dsl().update(item).set(sold, before + 1).where(id.eq(1L)).execute();
                }));
        }
    }
}
