// One hot row with Prisma and its driver adapter for pg.

import { PrismaPg } from "@prisma/adapter-pg";
import { PrismaClient } from "@prisma/client";
import { main } from "./load.js";

await main(async (url, workers) => {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: workers }) });
  return {
    // Prisma creates tables with a program of its own.
    setup: async () => {
      await prisma.$executeRaw`create table "Item" (id serial primary key, sold integer not null)`;
      await prisma.item.create({ data: { sold: 0 } });
    },
    autocommit: () => prisma.item.update({ where: { id: 1 }, data: { sold: { increment: 1 } } }),
    transaction: () =>
      prisma.$transaction(async (transaction) => {
        const [{ sold }] = await transaction.$queryRaw`select sold from "Item" where id = ${1} for update`;
        await transaction.item.update({ where: { id: 1 }, data: { sold: sold + 1 } });
      }),
    close: () => prisma.$disconnect(),
  };
});
