// One hot row with Knex.

import createKnex from "knex";
import { main } from "./load.js";

await main(async (url, workers) => {
  const knex = createKnex({ client: "pg", connection: url, pool: { min: 0, max: workers } });
  return {
    setup: async () => {
      await knex.schema.createTable("items", (table) => {
        table.increments("id");
        table.integer("sold").notNullable();
      });
      await knex("items").insert({ sold: 0 });
    },
    autocommit: () => knex("items").where("id", 1).increment("sold", 1),
    transaction: () =>
      knex.transaction(async (transaction) => {
        const { sold } = await transaction("items").where("id", 1).forUpdate().first();
        await transaction("items").where("id", 1).update({ sold: sold + 1 });
      }),
    close: () => knex.destroy(),
  };
});
