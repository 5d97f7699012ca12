// One hot row with Kysely.

import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { main } from "./load.js";

await main(async (url, workers) => {
  const pool = new pg.Pool({ connectionString: url, max: workers });
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
  return {
    setup: async () => {
      await db.schema
        .createTable("items")
        .addColumn("id", "serial", (column) => column.primaryKey())
        .addColumn("sold", "integer", (column) => column.notNull())
        .execute();
      await db.insertInto("items").values({ sold: 0 }).execute();
    },
    autocommit: () =>
      db
        .updateTable("items")
        .set((item) => ({ sold: item("sold", "+", 1) }))
        .where("id", "=", 1)
        .execute(),
    transaction: () =>
      db.transaction().execute(async (transaction) => {
        const { sold } = await transaction
          .selectFrom("items")
          .select("sold")
          .where("id", "=", 1)
          .forUpdate()
          .executeTakeFirstOrThrow();
        await transaction.updateTable("items").set({ sold: sold + 1 }).where("id", "=", 1).execute();
      }),
    close: () => db.destroy(),
  };
});
