"""Stores as older versions made them."""

from sqlalchemy import create_engine, text

from penstock.live.store import Store

VERSION_1 = """
CREATE TABLE penstock_schema (version BIGINT NOT NULL);
CREATE TABLE penstock_families ("user" TEXT NOT NULL, executable TEXT NOT NULL,
  nodes BIGINT NOT NULL, w_iter DOUBLE PRECISION, observations BIGINT NOT NULL,
  phase_bytes DOUBLE PRECISION, bandwidth DOUBLE PRECISION, pattern TEXT, curve TEXT,
  updated DOUBLE PRECISION NOT NULL, PRIMARY KEY ("user", executable, nodes));
CREATE TABLE penstock_counts (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO penstock_schema VALUES (1);
INSERT INTO penstock_counts VALUES ('serial', 7);
INSERT INTO penstock_families VALUES
  ('ann', '/apps/ior', 4, 12.5, 9, 1e9, 5e7, 'strided', '{"1": 5.35e7, "4": 6.2e7}', 1000.0),
  ('bob', 'solver', 1, NULL, 1, NULL, NULL, NULL, NULL, 2000.0)
"""
"""The tables of version 1 that differ, as it made them, and what it may have learnt."""


def make_version_1(url: str) -> None:
    """Make a store of version 1 where no store is yet."""
    with Store(url):
        pass  # the tables that did not change
    engine = create_engine(url)
    with engine.begin() as connection:
        for table in ("penstock_schema", "penstock_applications", "penstock_counts"):
            connection.execute(text(f"DROP TABLE {table}"))
        for statement in VERSION_1.split(";"):
            connection.exec_driver_sql(statement)
    engine.dispose()


def make_version_2(url: str) -> None:
    """Make a store one of version 2: without what version 3 added."""
    with Store(url):
        pass
    engine = create_engine(url)
    with engine.begin() as connection:
        for column in ("request_size", "tuned"):
            connection.execute(text(f"ALTER TABLE penstock_applications DROP COLUMN {column}"))
        for table in ("running", "ended"):
            connection.execute(text(f"ALTER TABLE penstock_{table} DROP COLUMN pinned"))
        connection.execute(text("UPDATE penstock_schema SET version = 2"))
    engine.dispose()
