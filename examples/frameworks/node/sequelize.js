// One hot row with Sequelize.

import { DataTypes, Sequelize } from "sequelize";
import { main } from "./load.js";

await main(async (url, workers) => {
  const sequelize = new Sequelize(url, { pool: { max: workers }, logging: false });
  const Item = sequelize.define("Item", {
    id: { type: DataTypes.INTEGER, primaryKey: true },
    sold: { type: DataTypes.INTEGER, allowNull: false },
  });
  return {
    setup: async () => {
      await sequelize.sync();
      await Item.create({ id: 1, sold: 0 });
    },
    autocommit: () => Item.increment({ sold: 1 }, { where: { id: 1 } }),
    transaction: () =>
      sequelize.transaction(async (transaction) => {
        const item = await Item.findByPk(1, { lock: true, transaction });
        item.sold++;
        await item.save({ transaction });
      }),
    close: () => sequelize.close(),
  };
});
