// One hot row with Drizzle.

import { eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { integer, pgTable } from "drizzle-orm/pg-core";
import pg from "pg";
import { main } from "./load.js";

const items = pgTable("items", {
  id: integer("id").primaryKey().generatedAlwaysAsIdentity(),
  sold: integer("sold").notNull(),
});

await main(async (url, workers) => {
  const pool = new pg.Pool({ connectionString: url, max: workers });
  const db = drizzle({ client: pool });
  return {
    // Drizzle creates tables with a program of its own, drizzle-kit.
    setup: async () => {
      await db.execute(sql`create table items (id integer primary key generated always as identity, sold integer not null)`);
      await db.insert(items).values({ sold: 0 });
    },
    autocommit: () => db.update(items).set({ sold: sql`${items.sold} + 1` }).where(eq(items.id, 1)),
    transaction: () =>
      db.transaction(async (tx) => {
        const [item] = await tx.select().from(items).where(eq(items.id, 1)).for("update");
        await tx.update(items).set({ sold: item.sold + 1 }).where(eq(items.id, 1));
      }),
    close: () => pool.end(),
  };
});
