// One hot row with Spring Data JDBC.

package frameworks;

import com.zaxxer.hikari.HikariDataSource;
import javax.sql.DataSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.jdbc.repository.config.AbstractJdbcConfiguration;
import org.springframework.data.jdbc.repository.config.EnableJdbcRepositories;
import org.springframework.data.jdbc.repository.query.Modifying;
import org.springframework.data.jdbc.repository.query.Query;
import org.springframework.data.relational.core.sql.LockMode;
import org.springframework.data.relational.repository.Lock;
import org.springframework.data.repository.CrudRepository;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.namedparam.NamedParameterJdbcOperations;
import org.springframework.jdbc.core.namedparam.NamedParameterJdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.TransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;

public class SpringDataItem {
    static Load load;

    interface Items extends CrudRepository<Item, Long> {
        @Modifying
        @Query("update item set sold = sold + 1 where id = :id")
        void sell(long id);

        @Lock(LockMode.PESSIMISTIC_WRITE)
        Item findOneById(long id);
    }

    static class Shop {
        private final Items items;

        Shop(Items items) {
            this.items = items;
        }

        @Transactional
        public void sell(long id) {
            var item = items.findOneById(id);
            item.sold++;
            items.save(item);
        }
    }

    @Configuration
    @EnableJdbcRepositories(considerNestedRepositories = true)
    @EnableTransactionManagement
    static class Application extends AbstractJdbcConfiguration {
        @Bean
        DataSource dataSource() {
            var pool = new HikariDataSource();
            pool.setJdbcUrl(load.jdbc());
            pool.setUsername(load.user());
            pool.setMaximumPoolSize(load.workers());
            return pool;
        }

        @Bean
        NamedParameterJdbcOperations operations(DataSource dataSource) {
            return new NamedParameterJdbcTemplate(dataSource);
        }

        @Bean
        TransactionManager transactionManager(DataSource dataSource) {
            return new JdbcTransactionManager(dataSource);
        }

        @Bean
        Shop shop(Items items) {
            return new Shop(items);
        }
    }

    public static void main(String[] arguments) throws Exception {
        load = Load.parse(arguments);
        try (var context = new AnnotationConfigApplicationContext(Application.class)) {
            var items = context.getBean(Items.class);
            var shop = context.getBean(Shop.class);
            load.run(
                () -> {
                    // The framework creates no tables.
                    var sql = new JdbcTemplate(context.getBean(DataSource.class));
                    sql.execute("create table item (id bigint primary key, sold integer not null)");
                    sql.execute("insert into item values (1, 0)");
                },
                () -> items.sell(1),
                () -> shop.sell(1));
        }
    }
}
