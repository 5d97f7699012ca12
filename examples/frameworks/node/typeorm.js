// One hot row with TypeORM.

import { DataSource, EntitySchema } from "typeorm";
import { main } from "./load.js";

const Item = new EntitySchema({
  name: "item",
  columns: {
    id: { type: "int", primary: true, generated: true },
    sold: { type: "int" },
  },
});

await main(async (url, workers) => {
  const dataSource = new DataSource({ type: "postgres", url, entities: [Item], poolSize: workers });
  await dataSource.initialize();
  const items = dataSource.getRepository(Item);
  return {
    setup: async () => {
      await dataSource.synchronize();
      await items.insert({ sold: 0 });
    },
    autocommit: () => items.increment({ id: 1 }, "sold", 1),
    transaction: () =>
      dataSource.transaction(async (manager) => {
        const item = await manager.findOne(Item, { where: { id: 1 }, lock: { mode: "pessimistic_write" } });
        item.sold++;
        await manager.save(Item, item);
      }),
    close: () => dataSource.destroy(),
  };
});
