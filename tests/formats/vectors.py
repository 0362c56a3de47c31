"""Bytes that the classes of Kafka 4.3.1 write, or that were compared with them byte for byte."""

TIME = 1_700_000_000_000
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
OTHER_ID = "EBESExQVFhcYGRobHB0eHw"
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

ABORT_MARKER = bytes.fromhex(
    "000000000000006700000042000000050297c3d36e0030000000000000018bcfe5683c0000018bcfe5683c0000000000000fa10001ffffffff00000001"
    "2000000008000000000c00000000000900"
)
"""The ABORT marker of producer 4001 at offset 103."""

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
    "partition with everything": bytes.fromhex(
        "01030200000001000102030405060708090a0b0c0d0e0f04000000010000000200000003020000000102000000030200000002000000010000000400"
        "00000904000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f000000000000000000000000000000010300010101050200"
        "00000202050200000003"
    ),
    "partition change with everything": bytes.fromhex(
        "01050200000001000102030405060708090a0b0c0d0e0f09000903000000010000000201040000000202090300000001000000020301010401010501"
        "00060101070101082103000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    ),
    "broker": bytes.fromhex(
        "0100040000000100000102030405060708090a0b0c0d0e0f0000000000000011020453534c0b62312e6578616d706c65fde800010002116d65746164"
        "6174612e76657273696f6e0007001e00037231010102002103000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f011102"
        "101112131415161718191a1b1c1d1e1f"
    ),
    "broker change": bytes.fromhex("011103000000010000000000000011040001ff010101021102000102030405060708090a0b0c0d0e0f030101"),
    "clear elr": bytes.fromhex("011c0004666f6f00"),
    "clear all elr": bytes.fromhex("011c000100"),
    "producer ids": bytes.fromhex("010f00000000010000000000000011000000000000138800"),
    "broker config": bytes.fromhex("010400040231116c6f672e726574656e74696f6e2e6d73023500"),
    "secret config": bytes.fromhex("010400040231216c697374656e65722e6e616d652e782e73736c2e6b65792e70617373776f72640868756e7465723200"),
    "controller": bytes.fromhex("011b0000000001000102030405060708090a0b0c0d0e0f00020243026823850000000100"),
}
"""Values of metadata records about topic `foo`, its partitions 0 and 1, `transaction.version`, and broker 1."""

CONTROL_VALUES = {
    "leader change 0": bytes.fromhex("00000000000102000000010002000000010000"),
    "leader change 1": bytes.fromhex(
        "0001000000020300000001000102030405060708090a0b0c0d0e0f0000000002101112131415161718191a1b1c1d1e1f000200000002101112131415"
        "161718191a1b1c1d1e1f0000"
    ),
    "snapshot header": bytes.fromhex("00000000018bcfe5680000"),
    "snapshot footer": bytes.fromhex("000000"),
    "kraft version": bytes.fromhex("0000000100"),
    "kraft voters": bytes.fromhex(
        "00000200000001000102030405060708090a0b0c0d0e0f020b434f4e54524f4c4c45520a6c6f63616c686f737498b50000000001000000"
    ),
}
"""Values of control records of the metadata quorum."""

TRANSACTION_VALUES = {
    "ongoing 0": bytes.fromhex("00000000000000000fa000030000ea6001000000010003666f6f00000001000000000000018bcfe568000000018bcfe56800"),
    "empty 0": bytes.fromhex("00000000000000000fa000000000ea6000ffffffff0000018bcfe56800ffffffffffffffff"),
    "ongoing 1": bytes.fromhex(
        "00010000000000000fa000030000ea60010204666f6f0200000000000000018bcfe568000000018bcfe568000200080000000000000fa002020002"
    ),
    "all tags": bytes.fromhex(
        "00010000000000000fa000030000ea6004010000018bcfe56800ffffffffffffffff0400080000000000000f9f01080000000000000fa10202000203020008"
    ),
}
"""Values of `__transaction_state`, versions 0 and 1."""

OFFSET_COMMITS = (
    bytes.fromhex("0000000000000000002a0002c3a90000018bcfe56800"),
    bytes.fromhex("0001000000000000002a0002c3a90000018bcfe568000000018bcfe56801"),
    bytes.fromhex("0002000000000000002a0002c3a90000018bcfe56800"),
    bytes.fromhex("0003000000000000002a000000050002c3a90000018bcfe56800"),
    bytes.fromhex("0004000000000000002a0000000503c3a90000018bcfe56800010010000102030405060708090a0b0c0d0e0f"),
)
"""Values of an offset commit, versions 0 to 4."""

GROUPS = (
    (
        bytes.fromhex(
            "00000008636f6e73756d657200000007000572616e676500036d2d310000000100036d2d31000163000a2f3132372e302e302e310000afc800000003"
            "01020300000000"
        ),
        bytes.fromhex("0000000000000000ffffffff00000000"),
    ),
    (
        bytes.fromhex(
            "00010008636f6e73756d657200000007000572616e676500036d2d310000000100036d2d31000163000a2f3132372e302e302e31000493e00000afc8"
            "0000000301020300000000"
        ),
        bytes.fromhex("0001000000000000ffffffff00000000"),
    ),
    (
        bytes.fromhex(
            "00020008636f6e73756d657200000007000572616e676500036d2d310000018bcfe568000000000100036d2d31000163000a2f3132372e302e302e31"
            "000493e00000afc80000000301020300000000"
        ),
        bytes.fromhex("0002000000000000ffffffffffffffffffffffff00000000"),
    ),
    (
        bytes.fromhex(
            "00030008636f6e73756d657200000007000572616e676500036d2d310000018bcfe568000000000100036d2d3100087374617469632d31000163000a"
            "2f3132372e302e302e31000493e00000afc80000000301020300000000"
        ),
        bytes.fromhex("0003000000000000ffffffffffffffffffffffff00000000"),
    ),
    (
        bytes.fromhex(
            "000409636f6e73756d6572000000070672616e6765046d2d310000018bcfe5680002046d2d31097374617469632d3102630b2f3132372e302e302e31"
            "000493e00000afc804010203010000"
        ),
        bytes.fromhex("000401000000000000ffffffffffffffff0100"),
    ),
)
"""Values of a group with a member, and of an empty one, versions 0 to 4."""

CONSUMER_GROUPS = (bytes.fromhex("00000000000900"), bytes.fromhex("00000000000901000800000000075bcd15"))
"""Values of a group of the newer protocol, without and with a hash."""

CONSUMER_GROUP_RECORDS = (
    (
        5,
        "000000000872646b61666b610b2f3132372e302e302e310107285e722e2a29000493e00001000100",
        '{"instanceId":null,"rackId":null,"clientId":"rdkafka","clientHost":"/127.0.0.1","subscribedTopicNames":[],"sub'
        'scribedTopicRegex":"(^r.*)","rebalanceTimeoutMs":300000,"serverAssignor":null,"classicMemberMetadata":null}',
    ),
    (
        5,
        "000004692d3900046f6c640b2f3132372e302e302e310203726101000493e000010034010000afc80213636f6f70657261746976652d73"
        "7469636b7919000300000001000272610000000000000000ffffffff00000000",
        '{"instanceId":"i-9","rackId":null,"clientId":"old","clientHost":"/127.0.0.1","subscribedTopicNames":["ra"],"su'
        'bscribedTopicRegex":"","rebalanceTimeoutMs":300000,"serverAssignor":null,"classicMemberMetadata":{"sessionTime'
        'outMs":45000,"supportedProtocols":[{"name":"cooperative-sticky","metadata":"AAMAAAABAAJyYQAAAAAAAAAA/////wAA"}'
        "]}}",
    ),
    (
        5,
        "000004692d3900046f6c640b2f3132372e302e302e310203726101000493e00001003c010000afc80213636f6f70657261746976652d73"
        "7469636b792100030000000100027261000000080000000000000003000000000000000300000000",
        '{"instanceId":"i-9","rackId":null,"clientId":"old","clientHost":"/127.0.0.1","subscribedTopicNames":["ra"],"su'
        'bscribedTopicRegex":"","rebalanceTimeoutMs":300000,"serverAssignor":null,"classicMemberMetadata":{"sessionTime'
        'outMs":45000,"supportedProtocols":[{"name":"cooperative-sticky","metadata":"AAMAAAABAAJyYQAAAAgAAAAAAAAAAwAAAA'
        'AAAAADAAA="}]}}',
    ),
    (
        6,
        "000000000002010008000001a1f833c5a5",
        '{"assignmentEpoch":2,"assignmentTimestamp":1795165504933}',
    ),
    (
        7,
        "0000039824aa20e9a344c3bdbd321a8dd36a9203000000000000000100e59d9170d820408d847aff62a7844beb0300000000000000010000",
        '{"topicPartitions":[{"topicId":"mCSqIOmjRMO9vTIajdNqkg","partitions":[0,1]},{"topicId":"5Z2RcNggQI2Eev9ip4RL6w'
        '","partitions":[0,1]}]}',
    ),
    (
        8,
        "0000000000010000000000010100",
        '{"memberEpoch":1,"previousMemberEpoch":0,"state":0,"assignedPartitions":[],"partitionsPendingRevocation":[]}',
    ),
    (
        8,
        "0000000000030000000200029824aa20e9a344c3bdbd321a8dd36a920300000000000000010100090300000002000000020100",
        '{"memberEpoch":3,"previousMemberEpoch":2,"state":0,"assignedPartitions":[{"topicId":"mCSqIOmjRMO9vTIajdNqkg","'
        'partitions":[0,1],"assignmentEpochs":[2,2]}],"partitionsPendingRevocation":[]}',
    ),
    (
        8,
        "0000000000020000000100039824aa20e9a344c3bdbd321a8dd36a92030000000000000001010009030000000200000002e59d9170d820"
        "408d847aff62a7844beb0300000000000000010100090300000002000000020100",
        '{"memberEpoch":2,"previousMemberEpoch":1,"state":0,"assignedPartitions":[{"topicId":"mCSqIOmjRMO9vTIajdNqkg","'
        'partitions":[0,1],"assignmentEpochs":[2,2]},{"topicId":"5Z2RcNggQI2Eev9ip4RL6w","partitions":[0,1],"assignment'
        'Epochs":[2,2]}],"partitionsPendingRevocation":[]}',
    ),
    (
        16,
        "000003037261037262000000000000002f000001a1f833c1c600",
        '{"topics":["ra","rb"],"version":47,"timestamp":1795165503942}',
    ),
)
"""Records of groups of the newer protocol that a broker of Kafka 4.3.1 wrote: type, value, and what its own dump tool says of it."""

STREAMS_GROUP_RECORDS = (
    (
        17,
        "000000000007fffffffffffffffb02000400000003011902156e756d2e7374616e6462792e7265706c69636173023100",
        '{"epoch":7,"metadataHash":-5,"validatedTopologyEpoch":3,"lastAssignmentConfigs":[{"key":"num.standby.replicas","value":"1"}]}',
    ),
    (  # this and the next one: the classes of 4.4.0
        17,
        "000000000007fffffffffffffffd03000400000002020400000002030400000001",
        '{"epoch":7,"metadataHash":-3,"validatedTopologyEpoch":2,"storedDescriptionTopologyEpoch":2,"failedDescriptionTopologyEpoch":1}',
    ),
    (
        17,
        "0000000000080000000000000005010204fffffffe",
        '{"epoch":8,"metadataHash":5,"storedDescriptionTopologyEpoch":-2}',
    ),
    (
        17,
        "000000000001000000000000000200",
        '{"epoch":1,"metadataHash":2}',
    ),
    (
        19,
        "0000026900066170702d310a2f31302e302e302e31000493e00000000304702d31010268fde80002057a6f6e6502610000",
        '{"instanceId":"i","rackId":null,"clientId":"app-1","clientHost":"/10.0.0.1","rebalanceTimeoutMs":300000,"topologyEpoch'
        '":3,"processId":"p-1","userEndpoint":{"host":"h","port":65000},"clientTags":[{"key":"zone","value":"a"}]}',
    ),
    (
        19,
        "0000010101032f68ffffffff0000000001ff0100",
        '{"instanceId":"","rackId":"","clientId":"","clientHost":"/h","rebalanceTimeoutMs":-1,"topologyEpoch":0,"processId":"",'
        '"userEndpoint":null,"clientTags":[]}',
    ),
    (
        20,
        "0000000000070100080000018bcfe56800",
        '{"assignmentEpoch":7,"assignmentTimestamp":1700000000000}',
    ),
    (
        21,
        "000002023003000000010000000200010100",
        '{"activeTasks":[{"subtopologyId":"0","partitions":[1,2]}],"standbyTasks":[],"warmupTasks":[]}',
    ),
    (
        22,
        "00000000000700000006020202300300000001000000020100090300000006000000070102023102000000000001010100",
        '{"memberEpoch":7,"previousMemberEpoch":6,"state":2,"activeTasks":[{"subtopologyId":"0","partitions":[1,2],"assignmentE'
        'pochs":[6,7]}],"standbyTasks":[],"warmupTasks":[{"subtopologyId":"1","partitions":[0]}],"activeTasksPendingRevocation"'
        ':[],"standbyTasksPendingRevocation":[],"warmupTasksPendingRevocation":[]}',
    ),
    (
        23,
        "0000000000030202300303696e05616c736f0204612e2a020e6170702d6368616e67656c6f67000000000003020f636c65616e75702e706f6c6963"
        "7908636f6d70616374000002106170702d7265706172746974696f6e010203000000010101000000",
        '{"epoch":3,"subtopologies":[{"subtopologyId":"0","sourceTopics":["in","also"],"sourceTopicRegex":["a.*"],"stateChangel'
        'ogTopics":[{"name":"app-changelog","partitions":0,"replicationFactor":3,"topicConfigs":[{"key":"cleanup.policy","value'
        '":"compact"}]}],"repartitionSinkTopics":["app-repartition"],"repartitionSourceTopics":[],"copartitionGroups":[{"source'
        'Topics":[0,1],"sourceTopicRegex":[],"repartitionSourceTopics":[]}]}]}',
    ),
)
"""Values of a Streams group's records by the types of their keys, and how Kafka's tool prints them."""

FORMATTED_4_4 = bytes.fromhex(
    "0000000000000000000000470000000002c371d627002000000000000001a20a89275d000001a20a89275dffffffffffffffffffffffffffff000000"
    "012a0000000800000003160000000001a20a89273b00000000000000000001000000f10000000002f22bb849000000000005000001a20a8927710000"
    "01a20a892771ffffffffffffffffffffffffffff000000063a000000012e010c00116d657461646174612e76657273696f6e002100005a000002014e"
    "010c0021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e00010000340000040128010c000e67726f75702e76657273"
    "696f6e00010000340000060128010c000e73686172652e76657273696f6e0002000038000008012c010c001073747265616d732e76657273696f6e00"
    "0100004000000a0134010c00147472616e73616374696f6e2e76657273696f6e0002000000000000000000070000003f00000000023e5172d3002000"
    "000000000001a20a89277b000001a20a89277bffffffffffffffffffffffffffff000000011a00000008000000040600000000"
)
"""`00000000000000000000-0000000000.checkpoint`, with which Kafka 4.4.0 formats a node (KIP-1170): feature levels, `share.version` 2 too."""

UNREGISTER_CONTROLLER = bytes.fromhex("011d0000000bb800")
"""A record of the metadata log that 4.4.0 has and 4.3 has not: kind 29, of controller 3000."""

DEAD_LETTERS = (
    bytes.fromhex("000100067368617265731da864ffb36a4f0c8796e752d84fe3ab00000000"),
    bytes.fromhex(
        "0000000000000000000000000000000000001f0000000000000000000000000000000002000100000000000000000100000000000000010300010000"
        "000000000000020000000000000004020001000000000000000005000000000000000503000100000000000000000600000000000000080200010000"
        "00000000000009000000000000000903000100000000000000000a000000000000000c02000100000000000000000d000000000000000d0300010000"
        "0000000000000e0000000000000010020001000000000000000011000000000000001103000100000000000000001200000000000000140200010000"
        "000000000000150000000000000015030001000000000000000016000000000000001802000100000000000000001900000000000000190300010000"
        "0000000000001a000000000000001c02000100000000000000001d000000000000001d03000100000000000000001e00000000000000200200010000"
        "000000000000210000000000000021030001000000000000000022000000000000002402000100000000000000002500000000000000250300010000"
        "000000000000260000000000000028020001000000000000000029000000000000002903000100000000000000002a000000000000002c0200010000"
        "0000000000002d000000000000002d03000100000000000000002e000000000000003002000100000000000000003100000000000000310300010000"
        "000000000000320000000000000034020001000000000000000035000000000000003503000100000000000000003600000000000000380200010000"
        "000000000000390000000000000039040001000100040000002c"
    ),
)
"""An update that a broker of 4.4.0 wrote for a share group while rejected records were copied to its dead letter queue: key and value."""
