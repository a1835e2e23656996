# The README's "With ROS 2 installed", as an image:
#   docker build -t biped_com_ros . && docker run --rm -it biped_com_ros
ARG DISTRIBUTION=jazzy
FROM ros:$DISTRIBUTION
WORKDIR /ws
COPY . src/biped_com_ros
RUN apt-get update && apt-get install -y python3-pip && rosdep update && \
    rosdep install --from-paths src --ignore-src -y && rm -rf /var/lib/apt/lists/*
RUN pip install --break-system-packages mujoco proxsuite rosbags viser
RUN . "/opt/ros/$ROS_DISTRO/setup.sh" && colcon build
ENV ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST
CMD ["bash", "-c", ". install/setup.bash && ros2 launch biped_com_ros demo.launch.py"]
