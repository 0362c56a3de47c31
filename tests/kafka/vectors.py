"""Bytes that were compared, byte for byte, with what the classes of Kafka 4.3.1 write."""

TIME = 1_700_000_000_000
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
_UUID = "000102030405060708090a0b0c0d0e0f"

DATA_BATCH = bytes.fromhex(
    "0000000000000064000000490000000502cc95ac1d0010000000010000018bcfe568000000018bcfe568070000000000000fa000030000000000000002"
    "14000000046b310476310018000e02010476320202680278"
)
"""Offsets 100 and 101 of producer 4000, epoch 3, transactional: (k1, v1) and (null, v2, header h=x)."""

COMMIT_MARKER = bytes.fromhex(
    "000000000000006600000042000000050221693c200030000000000000018bcfe568320000018bcfe568320000000000000fa00004ffffffff00000001"
    "2000000008000000010c00000000000900"
)
"""The COMMIT marker of that producer at offset 102."""

EMPTY_BATCH = bytes.fromhex(
    "00000000000000c8000000310000000502a7eeedad001000000004ffffffffffffffff0000018bcfe568630000000000000fa200000000000a00000000"
)
"""What compaction leaves of offsets 200 to 204."""

METADATA_RECORDS = {
    "topic": bytes.fromhex(f"01020004666f6f{_UUID}00"),
    "partition": bytes.fromhex(
        f"01030100000000{_UUID}030000000100000002020000000101010000000100000005000000060300000000000000000000000000000065"
        "0000000000000000000000000000006500"
    ),
    "partition change": bytes.fromhex(f"01050100000000{_UUID}0200090300000001000000020104" + "00000002"),
    "topic config": bytes.fromhex("0104000204666f6f0d726574656e74696f6e2e6d7306363030303000"),
    "cluster config": bytes.fromhex("0104000401116c6f672e726574656e74696f6e2e6d730000"),
    "feature": bytes.fromhex("010c00147472616e73616374696f6e2e76657273696f6e000200"),
    "no-op": bytes.fromhex("01140000"),
}
"""Values of metadata records about topic `foo`, its partition 0 and `transaction.version`."""
