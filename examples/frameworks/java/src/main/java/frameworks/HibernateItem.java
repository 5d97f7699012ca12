// One hot row with Hibernate.

package frameworks;

import jakarta.persistence.LockModeType;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

public class HibernateItem {
    private static final String SELL = "update Item set sold = sold + 1 where id = :id";

    private static void sell(Session session) {
        session.createMutationQuery(SELL).setParameter("id", 1L).executeUpdate();
    }

    public static void main(String[] arguments) throws Exception {
        var load = Load.parse(arguments);
        var configuration = new Configuration()
            .addAnnotatedClass(Item.class)
            .setProperty("hibernate.connection.url", load.jdbc())
            .setProperty("hibernate.connection.username", load.user())
            .setProperty("hibernate.hikari.maximumPoolSize", "" + load.workers());
        if (load.variant().equals("autocommit"))
            // Hibernate requires a transaction for an update and switches autocommit off unless it is told otherwise.
            configuration
                .setProperty("hibernate.allow_update_outside_transaction", "true")
                .setProperty("hibernate.connection.autocommit", "true");
        try (SessionFactory factory = configuration.buildSessionFactory()) {
            load.run(
                () -> {
                    factory.getSchemaManager().create(false);
                    factory.inTransaction(session -> {
                        var item = new Item();
                        item.id = 1L;
                        session.persist(item);
                    });
                },
                () -> {
                    if (load.variant().equals("autocommit")) factory.inSession(HibernateItem::sell);
                    else factory.inTransaction(HibernateItem::sell);
                },
                () -> factory.inTransaction(session -> {
                    var item = session.find(Item.class, 1L, LockModeType.PESSIMISTIC_WRITE);
                    item.sold++;
                }));
        }
    }
}
