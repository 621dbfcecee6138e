"""A 10 MB event where the limits have been raised for it."""
from test_bad_input import BadWorld, GOOD, event, text, STRUCTURED


def test_a_10_mb_event_is_served_where_the_limit_allows_it():
    world = BadWorld("big", 1, 1, 1, event_bytes_max="12MiB", instance_state_bytes_max="16MiB", instance_inbox_bytes_max="16MiB",
                     batch_bytes_max="32MiB").start()
    try:
        world.deploy(GOOD)
        world.produce(world.topics["events"], text(event(data={"n": 7, "text": "x" * 10000000})), b"huge", STRUCTURED)
        assert world.wait_ended("good", 1)[0]["output"] == {"n": 7, "size": 10000000}
        assert not world.dead_letters()
        world.good()
    finally:
        world.stop()
