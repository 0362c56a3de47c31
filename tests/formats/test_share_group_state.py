"""What a share group has given up and what is on its way to the dead letter queue, as a broker has written it."""

from streaming.kafka.formats.coordinator_states import ShareUpdate, read_share_key, read_share_value
from tests.formats.vectors import DEAD_LETTERS

ACKNOWLEDGED, ARCHIVING, ARCHIVED = 2, 3, 4


def test_records_on_their_way_to_the_dead_letter_queue_are_not_done_with() -> None:
    key = read_share_key(DEAD_LETTERS[0])
    assert key is not None
    assert (key.group, key.partition) == ("shares", 0)
    update = read_share_value(key, DEAD_LETTERS[1])
    assert isinstance(update, ShareUpdate)
    offsets = dict.fromkeys((ACKNOWLEDGED, ARCHIVING, ARCHIVED), 0)
    for batch in update.state_batches:
        offsets[batch.delivery_state] += batch.last_offset - batch.first_offset + 1
    assert offsets == {ACKNOWLEDGED: 43, ARCHIVING: 14, ARCHIVED: 1}  # the last one is the marker
    assert (update.start_offset, update.delivery_complete_count) == (0, 43 + 1)
