// One hot row with MikroORM.

import { EntitySchema, LockMode, MikroORM, raw } from "@mikro-orm/postgresql";
import { main } from "./load.js";

const Item = new EntitySchema({
  name: "Item",
  properties: {
    id: { type: "integer", primary: true },
    sold: { type: "integer" },
  },
});

await main(async (url, workers) => {
  const orm = await MikroORM.init({ clientUrl: url, entities: [Item], pool: { min: 0, max: workers } });
  return {
    setup: async () => {
      await orm.schema.createSchema();
      await orm.em.fork().insert(Item, { id: 1, sold: 0 });
    },
    autocommit: () => orm.em.fork().nativeUpdate(Item, { id: 1 }, { sold: raw("sold + 1") }),
    transaction: () =>
      orm.em.fork().transactional(async (em) => {
        const item = await em.findOneOrFail(Item, 1, { lockMode: LockMode.PESSIMISTIC_WRITE });
        item.sold++;
      }),
    close: () => orm.close(),
  };
});
