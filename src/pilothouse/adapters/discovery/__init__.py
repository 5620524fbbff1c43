"""Sessions that agents keep on their own: where each agent's records lie, what they tell, and what they become."""
