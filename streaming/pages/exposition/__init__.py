"""The view and the groups as families of metrics, chosen, labelled and rendered in the text formats of Prometheus."""
